"""What strangers found in the code room, each as it was found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import foveate
from foveate.code.index import CodeIndex
from foveate.code.query import parse_query
from foveate.pipeline.request_summary import FORGOTTEN
from foveate.receipts.codec import to_json
from foveate.testing import engine

GO = (
    "panic: x\n\ngoroutine 1 [running]:\nmain.(*Cart).Add(...)\n\t/x/go/main.go:9 +0x1\nmain.main()\n\t/x/go/main.go:17 +0x2"
)
JS = "TypeError: x\n    at handleLogin (/app/src/login.js:10:5)\n    at run (/app/src/run.js:3:1)"
JAVA = "Exception in thread\n\tat com.acme.Invoice.sum(Invoice.java:10)\n\tat com.acme.Main.main(Main.java:3)"


@pytest.mark.parametrize(
    ("trace", "innermost"),
    [
        (GO, ("/x/go/main.go", 9)),
        (JS, ("/app/src/login.js", 10)),
        (JAVA, ("com/acme/Invoice.java", 10)),
        ("thread 'main' panicked at 'not yet implemented', rs/lib.rs:11:55", ("rs/lib.rs", 11)),
        ('  File "a.py", line 1, in f\n  File "b.py", line 2, in g', ("b.py", 2)),
    ],
)
def test_the_innermost_frame_is_the_last_in_every_language(trace: str, innermost: tuple[str, int]) -> None:
    last = parse_query(trace).frames[-1]
    assert (last.path, last.line) == innermost


def test_blank_lines_cost_no_more_than_others() -> None:
    began = time.process_time()
    parse_query("Fix it\n```\nx\n```\n" + "\n" * 40_000 + "x")
    assert time.process_time() - began < 2


def test_what_a_template_asks_is_no_title() -> None:
    report = "### Describe the bug\nThe parser drops commas.\n\n```\nparse('a,b')\n```\n"
    assert "comma" in parse_query(report).topic_terms
    assert "describ" not in parse_query(report).topic_terms


def test_a_plain_word_names_what_is_called_so() -> None:
    files = {
        "io.py": "def dcmwrite(path):\n    return path\n",
        "api.py": "from io import dcmwrite\n\n\ndef save(path):\n    dcmwrite(path)\n    dcmwrite(path)\n",
    }
    with engine(files=files) as shop:
        assert shop.code.workspace.snapshot().search("dcmwrite").definitions[0].symbol.name == "dcmwrite"


def test_a_stub_gives_way_to_what_it_stands_for() -> None:
    stubs = "@overload\ndef read_table(a: int): ...\n\n\n@overload\ndef read_table(a: str): ...\n\n\n"
    body = "def read_table(a):\n" + "".join(f"    step_{n} = a\n" for n in range(30)) + "    return a\n"
    with engine(files={"readers.py": stubs + body}) as shop:
        found = [hit.symbol for hit in shop.code.workspace.snapshot().search("read_table").definitions if hit.symbol.name]
        assert [(one.name, one.end_line - one.start_line > 20) for one in found] == [("read_table", True)]


def test_an_index_belongs_to_its_settings(tmp_path: Path) -> None:
    token = "AKIAQWERTYUIOPASDFG1"
    root = tmp_path / "r"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n")
    trusting = CodeIndex(root, tmp_path / "code.db", allow=frozenset((token,)))
    trusting.refresh()
    strict = CodeIndex(root, tmp_path / "code.db")
    strict.refresh()
    (root / "b.py").write_text(f'def g():\n    """Uses {token}."""\n')
    trusting.refresh()
    strict.refresh()
    assert token not in strict.open_reader().symbols_in_file("b.py")[1].doc
    strict.close()
    trusting.close()


def test_a_cached_context_follows_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "a.py").write_text("def frobnicate():\n    return 'OLD'\n")
    with foveate.open(tmp_path, personal=False, cache_seconds=30) as shop:
        assert "OLD" in shop.context("frobnicate").text
        (tmp_path / "a.py").write_text("def frobnicate():\n    return 'NEWER'\n")
        assert "NEWER" in shop.context("frobnicate").text


def test_ids_that_are_printed_lead_back() -> None:
    with engine(
        files={
            "cart.cpp": "class Cart {\n public:\n  ~Cart() { drop(); }\n};\n",
            "x:y.py": "def colonist():\n    return 1\n",
        }
    ) as shop:
        assert "~Cart" in shop.expand("code:cart.cpp::Cart.~Cart")["content"]
        assert "colonist" in shop.expand("code:x:y.py::colonist")["content"]
        assert "colonist" in shop.expand("file:x:y.py")["content"]
        context = shop.context("colonist")
        assert shop.receipts.diff(context, context).shared_prefix


def test_a_context_whose_question_was_forgotten_is_still_read() -> None:
    with engine(files={"cache.py": "def redis_cache(key):\n    return key\n"}) as shop:
        gone = shop.add("fact", "The redis_cache of Zanzibar holds keys").record.id
        context = shop.context("Which keys does redis_cache hold in Zanzibar?", code_query="redis_cache of Zanzibar")
        shop.forget(gone)
        assert "zanzibar" not in str(to_json(shop.receipts.get(context.id))).lower()
        assert FORGOTTEN in shop.receipts.replay(context.id).missing
        assert not shop.receipts.replay(context.id).prompt.identical
        assert shop.receipts.diff(context.id, context.id).unread == (context.id, context.id)


def test_no_answer_about_files_outside_of_the_root() -> None:
    with engine(files={"a.py": "def f():\n    return 1\n"}) as shop:
        shop.context("f")
        for path in ("/etc/passwd", "../../etc/passwd"):
            with pytest.raises(foveate.NotFound):
                shop.why(f"file:{path}")


def test_a_file_that_a_task_creates_is_not_missed() -> None:
    with engine(files={"a.py": "def f():\n    return 1\n"}) as shop:
        shop.tasks.add("Add g", files=["new.py:create", "gone.py"], key="t")
        assert [warning for warning in shop.context(task="t").warnings if "new.py" in warning] == []
        assert any("gone.py" in warning for warning in shop.context(task="t").warnings)


def test_a_lock_file_changes_the_docs(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "scripts": {"test": "vitest"}}')
    with foveate.open(tmp_path, personal=False) as shop:
        before = [section.text for section in shop.code.workspace.snapshot().codebase_docs.sections]
    (tmp_path / "pnpm-lock.yaml").write_text("lockfileVersion: '9.0'\n")
    with foveate.open(tmp_path, personal=False) as shop:
        assert [section.text for section in shop.code.workspace.snapshot().codebase_docs.sections] != before
