"""Texts of files: opened safely, decoded, without what hides and what is secret, every line where it was."""

from __future__ import annotations

import os
import random
from hashlib import blake2b
from pathlib import Path

import pytest

from foveate.code.file_text import FileText, read_text
from foveate.code.model import Exclusion

BODY = "\n".join("MIIEpAIBAAKCAQEA7bq8bZ9Qn4l0n0d3m9c2Jx7W5y1uVt0Qp6s8kLrT" for _ in range(4))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"  # made up
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def text_of(root: Path, raw: bytes, name: str = "a.py") -> FileText:
    (root / name).write_bytes(raw)
    found = read_text(root, name)
    assert isinstance(found, FileText)
    return found


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        ("naïve = 1\n".encode(), "naïve = 1\n", "utf-8"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n", "utf-8-sig"),
        ("größe\n".encode("utf-16"), "größe\n", "utf-16"),
        ("größe\n".encode("utf-32"), "größe\n", "utf-32"),
        (b"gr\xf6\xdfe \x80\n", "größe €\n", "cp1252"),
        (b"gr\xf6\xdfe \x81\n", "größe \n", "latin-1"),
        ("# -*- coding: euc-jp -*-\n# 日本\n".encode("euc-jp"), "# -*- coding: euc-jp -*-\n# 日本\n", "euc_jp"),
        (b"# -*- coding: unicode_escape -*-\n\\n \xe9", "# -*- coding: unicode_escape -*-\n\\n é", "cp1252"),
        (b"", "", "utf-8"),
    ],
)
def test_encodings(raw: bytes, text: str, encoding: str, tmp_path: Path) -> None:
    found = text_of(tmp_path, raw)
    assert (found.text, found.encoding) == (text, encoding)
    assert found.hash == blake2b(raw, digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\n\n  a\n\n", "\n\n  a\n\n"),
        ("if admin\u202e \u2066x\u2069:\n".encode(), "if admin x:\n"),
        ("zero\u200bwidth \U000e0041tag\n".encode(), "zerowidth tag\n"),
        ("می\u200cخواهم 👩\u200d💻\n".encode(), "می\u200cخواهم 👩\u200d💻\n"),
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"\x1b]0;title\nnext\x07 x\n", "]0;title\nnext x\n"),
        (b"one\x0ctwo\nthree\n", "one two\nthree\n"),
        ("one\u2028two\x85three\n".encode(), "one two three\n"),
    ],
)
def test_what_hides_goes_and_lines_keep_their_numbers(raw: bytes, text: str, tmp_path: Path) -> None:
    assert text_of(tmp_path, raw).text == text


def test_secrets_are_replaced_and_no_line_moves(tmp_path: Path) -> None:
    source = f'first = 1\nTOKEN = "{TOKEN}"\nKEY = """{KEY}"""\nlast = 9\n'
    found = text_of(tmp_path, source.encode())
    lines = found.text.split("\n")
    assert set(found.redacted_kinds) == {"github", "private_key"}
    assert TOKEN not in found.text
    assert "MIIE" not in found.text
    assert [n for n, line in enumerate(lines) if line == "last = 9"] == [source.split("\n").index("last = 9")]
    assert len(lines) == len(source.split("\n"))


def test_what_is_allowed_stays(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f'TOKEN = "{TOKEN}"\nKEY = """{KEY}"""\n')
    found = read_text(tmp_path, "a.py", allow={TOKEN})
    assert isinstance(found, FileText)
    assert TOKEN in found.text
    assert found.redacted_kinds == ("private_key",)
    assert found.text.count("\n") == 7


def test_private_spans_go_but_a_mark_that_is_talked_about_does_not_hide_the_file(tmp_path: Path) -> None:
    source = "# `<private>` begins a span\na = 1\n# <private>mine\nalone</private> b\nlast = 9\n"
    found = text_of(tmp_path, source.encode())
    assert found.text == "# `<private>` begins a span\na = 1\n# [PRIVATE]\n b\nlast = 9\n"
    assert found.redacted_kinds == ("private",)


def test_any_mix_of_secrets_and_odd_characters_keeps_the_number_of_lines(tmp_path: Path) -> None:
    pieces = [KEY, f"t = '{TOKEN}'", "<private>", "</private>", "\r\n", "\u2028", "\x0c", "\x1b]", "\x1b[1m", "x", "\n",
              '"private_key": "-----BEGIN PRIVATE KEY-----', "-----BEGIN RSA PRIVATE KEY-----", "\u202e",
              "password = 'hunter22x'"]  # fmt: skip
    for seed in range(200):
        source = "\n".join(random.Random(seed).choices(pieces, k=12))
        found = text_of(tmp_path, source.encode())
        assert found.text.count("\n") == source.replace("\r\n", "\n").count("\n"), seed
        assert found.text.split("\n")[: found.text.count("\n")] == found.text.splitlines()[: found.text.count("\n")], seed


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x89PNG\x00\x01", "binary"),
        (bytes(range(1, 9)) * 50, "binary"),
        (b"x" * 1_000_001, "larger than 1,000,000 bytes"),
        (b"# @generated\nx = 1\n", "generated"),
        (b"a=1;" * 2000, "minified"),
    ],
)
def test_what_is_no_source_is_set_aside(raw: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_bytes(raw)
    assert read_text(tmp_path, "a.js") == Exclusion("a.js", reason)
    assert isinstance(read_text(tmp_path, "a.js", is_included=True), FileText) == (reason in ("generated", "minified"))


def test_nothing_but_a_regular_file_inside_of_the_root_is_opened(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.py").write_text("x")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "loop").symlink_to("loop")
    (root / "pkg").symlink_to(tmp_path / "other", target_is_directory=True)
    os.mkfifo(root / "pipe")
    why = {
        path: read_text(root, path)
        for path in ("link.py", "loop", "pkg/x.py", "pipe", "folder", "none.py", "../outside.py", "/etc/x")
    }
    assert {path: found.reason for path, found in why.items() if isinstance(found, Exclusion)} == {
        "link.py": "symbolic link",
        "loop": "symbolic link",
        "pkg/x.py": "behind a symbolic link",
        "pipe": "not a regular file",
        "folder": "not a regular file",
        "none.py": "no such file or directory",
        "../outside.py": "outside of the root",
        "/etc/x": "outside of the root",
    }


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    (tmp_path / "a.py").chmod(0)
    found = read_text(tmp_path, "a.py")
    assert (
        isinstance(found, FileText)
        if os.access(tmp_path / "a.py", os.R_OK)
        else found == Exclusion("a.py", "permission denied")
    )
