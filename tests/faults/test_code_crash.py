"""The code index under everything that can happen: kill -9, crowds, damage, a full disk, strange trees, secrets in code."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import foveate
from foveate import StoreError
from foveate.code import query
from foveate.code.index import CodeIndex
from foveate.code.index_reader import IndexReader
from foveate.code.search import search
from foveate.code.snapshot import Workspace

FILES = 160
QUESTIONS = ("handle the order of part 7", "Order7.total", "shared helper")


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def module(n: int, word: str = "handle") -> str:
    return (
        f'"""Part {n} of the shop."""\n\nfrom lib import shared\n\n\nclass Order{n}:\n    """An order."""\n\n'
        f"    def total(self):\n        return shared({n})\n\n\n"
        f"def {word}_{n}(order):\n    return Order{n}().total() + order\n"
    )


def repository(root: Path, number: int = FILES) -> Path:
    root.mkdir(parents=True)
    for n in range(number):
        (root / f"part_{n:04}.py").write_text(module(n), encoding="utf-8")
    (root / "lib.py").write_text("def shared(n):\n    '''A shared helper.'''\n    return n\n", encoding="utf-8")
    git(root, "init", "-q")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop")


def said(index: CodeIndex) -> dict[str, Any]:
    with index.open_reader() as reader:
        return told(reader)


def told(reader: IndexReader) -> dict[str, Any]:
    """What an index says: files with their definitions, what it set aside, what questions find."""
    table = reader.file_table()
    definitions = {
        path: [(s.qualified_name, s.occurrence, s.start_line, s.end_line) for s in reader.symbols_in_file(path)]
        for path in table.by_path
    }
    best = {}
    for text in QUESTIONS:
        hit = search(reader, query.parse_query(text)).definitions[0]
        best[text] = (hit.symbol.path, hit.symbol.qualified_name, round(hit.relevance, 3))
    return {
        "files": {path: file.hash for path, file in table.by_path.items()},
        "definitions": definitions,
        "number": table.documents.count,
        "aside": [(aside.path, aside.reason) for aside in reader.exclusions()],
        "best": best,
    }


def assert_like_fresh(root: Path, file: Path, tmp_path: Path) -> None:
    """One refresh brings the index to where a new one would be."""
    with closing(CodeIndex(root, file)) as index, closing(CodeIndex(root, tmp_path / "fresh.db")) as fresh:
        index.refresh()
        fresh.refresh()
        assert said(index) == said(fresh)
        assert index._db.fetch_all("PRAGMA integrity_check") == [("ok",)]
    (tmp_path / "fresh.db").unlink()


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# --- killed, and in a crowd ----------------------------------------------------------------------------------------------

INDEXER = """
import sys
from pathlib import Path
from foveate.code import indexing
from foveate.code.index import CodeIndex
indexing.FILES_PER_TRANSACTION = 10
index = CodeIndex(Path(sys.argv[1]), sys.argv[2])
print("ready", flush=True)
index.refresh(lambda done, total: print(done, flush=True))
print("done", flush=True)
"""


def test_an_indexer_killed_at_any_moment_leaves_an_index_that_goes_on(root: Path, tmp_path: Path) -> None:
    file, chance, reached = tmp_path / "code.db", random.Random(7), set()
    for turn in range(6):
        with child(INDEXER, root, file) as process:
            assert process.stdout is not None
            steps = 1 + chance.randint(0, 12)
            for _ in range(steps):
                said_so = process.stdout.readline().strip()
            time.sleep(chance.random() * 0.01)
            process.kill()
            reached.add(said_so)
        with closing(CodeIndex(root, file)) as index:
            assert index._db.fetch_all("PRAGMA integrity_check") == [("ok",)]
            names = index.open_reader().file_table().by_path
            assert all(index.open_reader().symbols_in_file(path) for path in names)
        for n in chance.sample(range(FILES), k=20):
            (root / f"part_{n:04}.py").write_text(module(n, f"handle{turn}"), encoding="utf-8")
    assert len(reached) > 3
    assert_like_fresh(root, file, tmp_path)


WORKER = """
import random, sys
from pathlib import Path
import foveate
root, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance = random.Random(name)
with foveate.open(root, agent=name) as engine:
    for n in range(rounds):
        own = root / f"own_{name}.py"
        own.write_text(f"def own_{name}(order):\\n    return handle_{n}(order)\\n" * (n % 3 + 1))
        part = root / f"part_{chance.randrange(20):04}.py"
        if n % 3 == 0:
            part.unlink(missing_ok=True)
        else:
            part.write_text(f"def handle_{n}(order):\\n    return {n}\\n")
        engine.code.workspace.refresh()
        context = engine.context("handle the order, own_1, shared helper", budget=3000)
        failed = [report for report in engine.receipts.get(context).sources if report.error]
        if failed:
            sys.exit(str(failed))
"""


def test_processes_that_refresh_and_ask_while_files_change_never_fail(root: Path, tmp_path: Path) -> None:
    foveate.open(root).close()
    workers = [child(WORKER, root, name, 8) for name in range(3)]
    ended = [(*worker.communicate(), worker.returncode) for worker in workers]
    assert ended == [("", "", 0)] * 3
    assert_like_fresh(root, root / ".foveate/code.db", tmp_path)


def test_processes_that_open_a_new_index_at_once_make_one(root: Path, tmp_path: Path) -> None:
    workers = [child(INDEXER, root, tmp_path / "code.db") for _ in range(4)]
    for worker in workers:
        out, error = worker.communicate()
        assert (worker.returncode, error, out.split()[-1]) == (0, "", "done")
    assert_like_fresh(root, tmp_path / "code.db", tmp_path)


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


def test_what_one_reader_says_is_of_one_state(root: Path, tmp_path: Path) -> None:
    """Whatever another process writes between two queries of a search."""
    file = tmp_path / "code.db"
    with closing(CodeIndex(root, file)) as asking, closing(CodeIndex(root, file)) as writing:
        asking.refresh()
        with asking.open_reader() as reader:
            before = told(reader)
            for n in range(40):
                (root / f"part_{n:04}.py").write_text(module(n, "brand_new"), encoding="utf-8")
            writing.refresh()
            assert told(reader) == before
            assert not reader.symbols_by_name(["brand_new_7"])
        assert asking.open_reader().symbols_by_name(["brand_new_7"])
        assert said(asking) == said(writing) != before


def test_a_new_file_that_another_process_holds_is_waited_for(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "code.db"
    with closing(apsw.Connection(str(file))) as other:
        other.execute("CREATE TABLE something (x); BEGIN EXCLUSIVE")
        release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
        release.start()
        with closing(CodeIndex(root, file)) as index:
            assert index.refresh().parsed_files == FILES + 1
        release.join()


def test_threads_that_refresh_and_ask_while_files_change_never_fail(root: Path, tmp_path: Path, often: None) -> None:
    workspace = Workspace(root, tmp_path / "code.db")
    failures: list[BaseException] = []
    start = threading.Barrier(4)
    steady = ["shared", *(f"Order{n}" for n in range(20, FILES))]

    def work(name: int) -> None:
        chance = random.Random(name)
        try:
            start.wait()
            for n in range(6):
                part = root / f"part_{chance.randrange(20):04}.py"
                part.write_text(f"def handle_{n}(order):\n    return {name}\n", encoding="utf-8")
                workspace.refresh()
                look = workspace.snapshot()
                for hit in look.search(f"handle the order {n}").definitions[:10]:
                    look.lines(hit.symbol.path)
                assert {name: len(found) for name, found in look.index.symbols_by_name(steady).items()} == dict.fromkeys(
                    steady, 1
                )
                look.index.references_to(["shared"])
                look.index.most_referenced(20)
                assert look.codebase_docs.sections
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(workspace.index.open_reader().symbols_by_name(["shared"])["shared"]) == 1
    workspace.close()
    assert_like_fresh(root, tmp_path / "code.db", tmp_path)


@pytest.mark.parametrize("writer", ["the same index", "another one"])
def test_threads_are_answered_from_one_generation_while_somebody_refreshes(
    root: Path, tmp_path: Path, writer: str, often: None
) -> None:
    """Each turn stamps some files and takes them in at once: an answer with two turns in it is of two generations."""
    index = CodeIndex(root, tmp_path / "code.db")
    writing = index if writer == "the same index" else CodeIndex(root, tmp_path / "code.db")
    paths = {f"stamp_{n}": f"part_{n:04}.py" for n in range(20)}
    failures: list[BaseException] = []
    seen: set[str] = set()
    over = threading.Event()

    def stamp(turn: int) -> None:
        for name, path in paths.items():
            (root / path).write_text(f"def {name}():\n    'Turn {turn}.'\n    turned_{turn}()\n", encoding="utf-8")
        writing.refresh()

    def ask(seed: int) -> None:
        chance = random.Random(seed)
        try:
            while not over.is_set():
                some = chance.sample(list(paths), k=chance.randint(2, len(paths)))
                with index.open_reader() as reader:
                    (turn,) = {symbol.doc for symbols in reader.symbols_by_name(some).values() for symbol in symbols}
                    seen.add(turn)
                    (here,) = (symbol for symbol in reader.symbols_in_file(paths[some[0]]) if symbol.name)
                    assert reader.symbols([here.id]) == {here.id: here}
                    (used,) = reader.references_from([here.id])[here.id]
                    assert here.doc == turn == f"Turn {used.removeprefix('turned_')}."
                    assert len(reader.symbols(reader.references_to([used])[used])) == len(paths)
        except BaseException as failure:
            failures.append(failure)

    stamp(0)
    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(1, 12):
        stamp(turn)
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(seen) > 2
    for one in {index, writing}:
        one.close()
    assert_like_fresh(root, tmp_path / "code.db", tmp_path)


# --- damage ------------------------------------------------------------------------------------------------------------


def _garbage(file: Path, first: float, last: float) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(int(size * first))
        opened.write(random.Random(3).randbytes(int(size * (last - first))))


def _postings(file: Path) -> None:
    """Only what a question needs, and no refresh reads."""
    with closing(apsw.Connection(str(file))) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'postings'").get
        size = connection.execute("PRAGMA page_size").get
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xff" * size)


def _foreign(file: Path) -> None:
    file.unlink()
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute('CREATE TABLE "some table" (x); CREATE TABLE meta (other TEXT); CREATE TABLE files (y)')


def _older(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("UPDATE meta SET value = '0.0' WHERE name = 'version'; DELETE FROM files WHERE id % 2")


HARMS = {
    "another version": _older,
    "a database of somebody else": _foreign,
    "text": lambda file: file.write_text("not a database\n" * 500, encoding="utf-8"),
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: os.truncate(file, file.stat().st_size // 2),
    "a broken head": lambda file: _garbage(file, 0.0, 0.01),
    "a broken middle": lambda file: _garbage(file, 0.3, 0.6),
    "a broken end": lambda file: _garbage(file, 0.6, 1.0),
    "broken posting lists": _postings,
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_index_is_built_again_and_every_context_is_computed(root: Path, tmp_path: Path, harm: str) -> None:
    file = root / ".foveate/code.db"
    with foveate.open(root) as engine:
        before = engine.context("handle the order of part 7", budget=3000)
    HARMS[harm](file)
    with foveate.open(root) as engine:
        for _ in range(2):
            context = engine.context("handle the order of part 7", budget=3000)
            warned = " ".join(engine.receipts.validate(context).warnings)
            assert context.text == before.text or "It is built again at the next look." in warned
            engine.code.workspace._walked_at = 0.0  # as if a second had passed
        assert engine.context("handle the order of part 7", budget=3000).text == before.text
    assert_like_fresh(root, file, tmp_path)


def test_damage_under_an_open_index_is_mended_at_the_next_refresh(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "code.db"
    with closing(CodeIndex(root, file)) as index:
        index.refresh()
    with closing(CodeIndex(root, file)) as index:
        _garbage(file, 0.02, 1.0)
        index.refresh()
        assert len(index.open_reader().file_table().files) == FILES + 1
    assert_like_fresh(root, file, tmp_path)


def test_an_index_of_another_folder_is_built_again(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        index.refresh()
    shutil.copytree(root, other)
    (other / "lib.py").unlink()
    assert_like_fresh(other, tmp_path / "code.db", tmp_path)


def test_an_index_whose_file_is_deleted_while_it_is_open_goes_on(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "db" / "code.db"
    file.parent.mkdir()
    with closing(CodeIndex(root, file)) as index:
        index.refresh()
        shutil.rmtree(file.parent)
        (root / "part_0001.py").write_text("def brand_new(): pass\n", encoding="utf-8")
        index.refresh()
        assert index.open_reader().symbols_by_name(["brand_new"])["brand_new"][0].path == "part_0001.py"
        file.parent.mkdir()
        assert_like_fresh(root, file, tmp_path)
        index.refresh()
    assert_like_fresh(root, file, tmp_path)


@pytest.mark.parametrize("obstacle", ["a folder", "a folder that cannot be written"])
def test_without_an_index_there_is_a_context_that_says_why(root: Path, obstacle: str) -> None:
    with foveate.open(root) as engine:
        engine.add("decision", "Orders are handled in parts.")
        if obstacle == "a folder":
            (root / ".foveate/code.db").mkdir()
        elif os.geteuid() == 0:
            pytest.skip("nothing is forbidden to this user")
        else:
            (root / ".foveate").chmod(0o555)
        try:
            context = engine.context("handle the order", budget=3000)
        finally:
            (root / ".foveate").chmod(0o755)
        assert "Orders are handled in parts." in context.text
        assert "```" not in context.text
        warned = engine.receipts.validate(context).warnings
        assert any("code.db' cannot be opened" in warning for warning in warned), warned
        with pytest.raises(StoreError, match="Delete it, or check who may write there"):
            engine.code.workspace.refresh()
        shutil.rmtree(root / ".foveate/code.db", ignore_errors=True)
        assert "```" in engine.context("handle the order", budget=3000).text


FULL_DISK = """
import resource, sys
from pathlib import Path
from foveate.code.index import CodeIndex
from foveate.errors import StoreError
index = CodeIndex(Path(sys.argv[1]), sys.argv[2])
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
for size in (60_000, 150_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        index.refresh()
    except StoreError as error:
        print("cannot be written" in str(error), index.open_reader().file_table().files)
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
print(index.refresh().parsed_files)
"""


def test_a_full_disk_is_a_clear_error_and_afterwards_the_index_goes_on(root: Path, tmp_path: Path) -> None:
    out, error = child(FULL_DISK, root, tmp_path / "code.db").communicate()
    assert (out.split("\n"), error) == (["True {}", "True {}", str(FILES + 1), ""], "")
    assert_like_fresh(root, tmp_path / "code.db", tmp_path)


# --- strange trees -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path / "odd", number=2)


@pytest.fixture
def index(tree: Path, tmp_path: Path) -> Iterator[CodeIndex]:
    with closing(CodeIndex(tree, tmp_path / "code.db")) as opened:
        yield opened


def reasons(index: CodeIndex) -> dict[str, str]:
    return {aside.path: aside.reason for aside in index.open_reader().exclusions()}


@pytest.mark.parametrize("kind", ["nothing", "a repository without files", "a folder without git", "gone"])
def test_folders_without_code(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "r"
    root.mkdir()
    if kind == "a repository without files":
        git(root, "init", "-q")
    elif kind == "a folder without git":
        (root / "a.py").write_text("def one(): pass\n", encoding="utf-8")
    with foveate.open(root, code=True) as engine:
        if kind == "gone":
            engine.code.workspace.refresh()
            shutil.rmtree(root)
        done = engine.code.workspace.refresh()
        assert done.files == (kind == "a folder without git")
        assert list(engine.code.workspace.index.open_reader().symbols_by_name(["one"])) == ["one"] * done.files
        if kind != "gone":
            assert engine.context("where is one?").profile == "coding"


@pytest.mark.parametrize("with_git", [True, False])
def test_what_cannot_be_indexed_is_set_aside_with_a_reason_and_the_rest_goes_on(tmp_path: Path, with_git: bool) -> None:
    root = repository(tmp_path / "odd", number=2)
    (root / "huge.py").touch()
    os.truncate(root / "huge.py", 200_000_000)
    (root / "loop").mkdir()
    (root / "loop/back").symlink_to(root)
    (root / "self.py").symlink_to("self.py")
    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(root)  # a socket's path must be short
        bound.bind("s.py")
        os.chdir(here)
    (root / "two\nlines.py").write_text("x = 1\n", encoding="utf-8")
    with open(os.fsencode(root) + b"/\xff\xfe.py", "wb") as file:
        file.write(b"x = 1\n")
    (root / "closed.py").write_text("x = 1\n", encoding="utf-8")
    (root / "closed.py").chmod(0)
    if not with_git:
        shutil.rmtree(root / ".git")
    began = time.process_time()
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        index.refresh()
        assert time.process_time() - began < 5
        found, why = set(index.open_reader().file_table().by_path), reasons(index)
        assert {"lib.py", "part_0000.py", "part_0001.py"} <= found
        assert found <= {"lib.py", "part_0000.py", "part_0001.py", "closed.py"}
        assert why["huge.py"] == "larger than 1,000,000 bytes"
        assert why["loop/back"] == why["self.py"] == "symbolic link"
        assert why["two\\nlines.py"] == "its name has control characters"
        assert why["\\udcff\\udcfe.py"] == "its name is not UTF-8"
        assert ("closed.py" in found) or why["closed.py"] == "permission denied"
        assert why.get("pipe.py", "pipe") == "pipe"  # git does not speak of pipes and sockets
        assert index.refresh().parsed_files == 0


def test_any_bytes_are_read_as_some_text(tree: Path, index: CodeIndex) -> None:
    (tree / "latin.py").write_bytes("# -*- coding: latin-1 -*-\ndef größe():\n    return 'naïve'\n".encode("latin-1"))
    (tree / "crlf.py").write_bytes(b"def one():\r\n    return 1\r\n\r\n\r\ndef two():\r\n    return 2\r\n")
    (tree / "utf16.py").write_bytes("def wide():\n    return 1\n".encode("utf-16"))
    (tree / "noise.py").write_bytes(bytes(range(32, 256)) * 4)
    index.refresh()
    assert index.open_reader().symbols_by_name(["größe"])["größe"][0].path == "latin.py"
    reader = index.open_reader()
    assert [(s.name, s.start_line, s.end_line) for s in reader.symbols_in_file("crlf.py")[1:]] == [
        ("one", 1, 2),
        ("two", 5, 6),
    ]
    assert index.open_reader().symbols_by_name(["wide"])["wide"][0].start_line == 1


def test_a_syntax_error_in_every_file_stops_nothing(tree: Path, index: CodeIndex) -> None:
    samples = Path(__file__).parents[1] / "code_samples"
    for path in sorted(samples.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        (tree / f"{path.stem}_sample.py").write_text(text[: len(text) // 2] + "\n)}] def ((\n" + text, encoding="utf-8")
    (tree / "deep.py").write_text("(" * 30_000, encoding="utf-8")
    (tree / "deep.js").write_text("[\n" * 30_000, encoding="utf-8")
    done = index.refresh()
    assert done.parsed_files == done.files - len([path for path in reasons(index) if path.startswith("deep")])
    assert index.open_reader().stats()["broken"] >= 20
    assert search(index.open_reader(), query.parse_query("shared helper")).files[0].file.path == "lib.py"


def test_thousands_of_files_in_one_folder_take_seconds(tmp_path: Path) -> None:
    root = tmp_path / "many"
    (root / "all").mkdir(parents=True)
    for n in range(5000):
        (root / f"all/f{n}.py").write_text(f"def f{n}(): return {n}\n", encoding="utf-8")
    git(root, "init", "-q")
    began = time.process_time()
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        assert index.refresh().parsed_files == 5000
        assert search(index.open_reader(), query.parse_query("f4321")).definitions[0].symbol.name == "f4321"
    assert time.process_time() - began < 15


# --- secrets -----------------------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8"
PASSWORD = "hunter2-Tr0ub4dor"
KEY_LINE = "MIIEpAIBAAKCAQEA7v1n3xq5y8Zk2bT4uQ9wXcRfGhJkLmNoPqRsTuVwXyZ01234"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE[::-1]}\n-----END RSA PRIVATE KEY-----"
LEAKY = f'''"""Connects with {TOKEN}."""

DATABASE = "postgres://shop:{PASSWORD}@db.example.org/shop"
KEY = """{PEM}"""


def connect_database(token="{TOKEN}", url="https://ann:{PASSWORD}@example.org/x"):
    """Open the connection; the token is {TOKEN}."""
    return {PASSWORD.partition("-")[0]}_helper(token, "{TOKEN}")
'''


def raw(folder: Path) -> bytes:
    """All bytes of the index and of what belongs to it."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("code.db*")))


def test_secrets_are_in_no_byte_of_the_index_and_in_no_context(tree: Path) -> None:
    (tree / "leaky.py").write_text(LEAKY, encoding="utf-8")
    (tree / "README.md").write_text(f"# Shop\n\nRun it with `TOKEN={TOKEN} run {PASSWORD}`.\n", encoding="utf-8")
    for name in (".env", "server.key", "id_rsa", "secrets.yml"):
        (tree / name).write_text(f"SHOP_ONLY_IN_ENV={TOKEN}\n{PEM}\n", encoding="utf-8")
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "all of it")
    with foveate.open(tree) as engine:
        texts = [engine.context(asked, budget=6000).text for asked in ("connect_database in leaky.py", f"{TOKEN} .env")]
        texts += [engine.expand(id)["content"] for id in ("file:leaky.py", "code:leaky.py::connect_database")]
        held = raw(tree / ".foveate")
        assert "connect_database" in texts[0]
        assert {".env", "server.key", "id_rsa", "secrets.yml"} <= reasons(engine.code.workspace.index).keys()
        for name in (".env", "server.key", "id_rsa", "secrets.yml"):
            with pytest.raises(foveate.NotFound):
                engine.expand(f"file:{name}")
        assert engine.code.workspace.index.open_reader().stats()["redacted"] >= 1
        assert "SHOP_ONLY_IN_ENV" not in "".join(texts)
    held += raw(tree / ".foveate")
    assert b"shop_only_in_env" not in held.lower()
    for secret in (TOKEN, KEY_LINE, KEY_LINE[::-1], f":{PASSWORD}@"):
        assert secret not in "".join(texts)
        for spelled in (secret, secret.lower()):
            assert spelled.encode() not in held


def test_the_allow_list_says_what_is_no_secret(tree: Path) -> None:
    (tree / "leaky.py").write_text(LEAKY, encoding="utf-8")
    for allowed in (False, True, False):
        (tree / ".foveate").mkdir(exist_ok=True)
        (tree / ".foveate/allow").write_text(f"# examples\n{TOKEN}\n" if allowed else "", encoding="utf-8")
        with foveate.open(tree) as engine:
            text = engine.context("connect_database in leaky.py", budget=6000).text
            assert (TOKEN in text) == allowed
            assert KEY_LINE not in text
            assert (
                TOKEN
                in engine.code.workspace.index.open_reader().symbols_by_name(["connect_database"])["connect_database"][0].doc
            ) == allowed
