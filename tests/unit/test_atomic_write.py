"""A file is replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from foveate.text.atomic_write import replaced_on_success, write_file


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_an_error_leaves_the_old_content_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("old", "utf-8")

    def fail() -> None:
        with replaced_on_success(path) as part:
            part.write_text("half of the", "utf-8")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        fail()
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_and_a_link_stay_as_they_were(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles.json", tmp_path / "link.json"
    target.write_text("old", "utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert (target.read_text("utf-8"), permissions(target)) == ("new", 0o640)


def test_a_private_file_is_for_its_owner_alone_and_replaces_a_link(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "tokens.json"
    elsewhere.write_text("theirs", "utf-8")
    path.symlink_to(elsewhere)
    write_file(path, b"secret", private=True)
    assert (path.is_symlink(), permissions(path), path.read_bytes()) == (False, 0o600, b"secret")
    assert elsewhere.read_text("utf-8") == "theirs"


def test_an_exclusive_write_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "service.json"
    write_file(path, "first", exclusive=True)
    with pytest.raises(FileExistsError):
        write_file(path, "second", exclusive=True)
    assert path.read_text("utf-8") == "first"
    assert os.listdir(tmp_path) == ["service.json"]
