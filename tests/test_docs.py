"""The documentation runs: its Python, its commands and its links.

A page is one story: its blocks run in order, in one namespace and one empty working directory. `python` blocks run
here, `console` blocks run their `$ foveate ...` lines, in the same process. Info strings: `exit=N` gives the exit code
of a console block's last command (0 otherwise), `notest` leaves a block out. A `text output` block is what the block
before it printed, word for word. A page that names DATABASE_URL has a fresh database of a real server there, and a role.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from foveate.cli import cli
from postgres_server import Server

ROOT = Path(__file__).parents[1]

MAX_NOTEST = 5
"""Few enough that each one is a decision."""

MACHINE_PATH = re.compile(r"(^|[^A-Za-z])/(root|home/[a-z]+|work|farm)/", re.MULTILINE)

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)|^ {0,3}\[[^\]]+\]:\s*(\S+)|(?:src|href|srcset)=\"([^\"\s]+)")
SHELL = frozenset({"|", ">", ">>", "<", "&&", "||", ";", "&"})


@dataclass(frozen=True)
class Block:
    info: tuple[str, ...]
    line: int
    text: str

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""

    @property
    def is_skipped(self) -> bool:
        return "notest" in self.info

    @property
    def exit_code(self) -> int:
        return next((int(word.removeprefix("exit=")) for word in self.info if word.startswith("exit=")), 0)


def split(text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    """The fenced blocks of a page, and the numbered lines outside them."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    opening: re.Match[str] | None = None
    start, body = 0, [""]
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opening is None:
            if fence:
                opening, start, body = fence, number, []
            else:
                prose.append((number, line))
        elif fence and fence["ticks"].startswith(opening["ticks"]) and not fence["info"].strip():
            blocks.append(Block(tuple(opening["info"].split()), start, "\n".join(body)))
            opening = None
        else:
            body.append(line.removeprefix(opening["indent"]))
    assert opening is None, f"the block that begins on line {start} is never closed"
    return blocks, prose


def commands(text: str) -> list[list[str]]:
    """The arguments of each `$ foveate ...` line of a console block; a trailing backslash joins lines."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ "))[1:] for line in lines if re.match(r"\$ foveate( |$)", line)]


def existing(*names: str) -> list[Path]:
    found = [ROOT / name for name in names if (ROOT / name).is_file()]
    return [*found, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def runnable(path: Path) -> list[Block]:
    blocks = split(path.read_text(encoding="utf-8"))[0]
    return [b for b in blocks if b.language in ("python", "console") or b.info == ("text", "output")]


QUOTED = re.compile(r"\bdata-\d{9}\b")
"""The tag of what is quoted: every store draws a number of its own."""


def run_python(page: Path, block: Block, namespace: dict[str, object]) -> str:
    """What the block prints."""
    printed = StringIO()
    with redirect_stdout(printed):
        # Blank lines put the block at its own line numbers, so that a traceback points into the page.
        exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
    return printed.getvalue()


def run_console(page: Path, block: Block) -> str:
    """Run the commands of a block in this process, and return what the last one prints."""
    printed = ""
    lines = commands(block.text)
    for number, arguments in enumerate(lines, 1):
        where = f"{name_of(page)}:{block.line}: foveate {shlex.join(arguments)}"
        assert not SHELL.intersection(arguments), f"{where}: pipes and redirections are not run; show the plain command"
        done = CliRunner().invoke(cli, arguments, env={"NO_COLOR": "1"}, catch_exceptions=False)
        expected = block.exit_code if number == len(lines) else 0
        report = f"{where}: exit code {done.exit_code}, expected {expected}\n{done.output}"
        assert done.exit_code == expected, report
        printed = done.stdout
    return printed


@pytest.fixture
def database(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For a page that wants one: a database, and a role `ada` that may log in and nothing else."""
    if "DATABASE_URL" not in page.read_text(encoding="utf-8"):
        yield
        return
    server: Server = request.getfixturevalue("postgres")  # started only for such a page
    if not server.execute("select 1 from pg_roles where rolname = 'ada'"):
        server.execute("create role ada login")
    url = server.database()
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("ADA_DATABASE_URL", re.sub("//.*?@", "//ada@", url, count=1))
    yield
    server.drop(url)


@pytest.mark.parametrize("page", [p for p in existing("README.md") if any(runnable(p))], ids=name_of)
@pytest.mark.usefixtures("database")
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    printed = ""
    for block in runnable(page):
        if block.is_skipped:
            continue
        if block.language == "python":
            printed = run_python(page, block, module.__dict__)
        elif block.language == "console":
            printed = run_console(page, block)
        else:
            shown, said = (QUOTED.sub("data-", text.strip()) for text in (block.text, printed))
            assert shown == said, f"{name_of(page)}:{block.line}: this is not what was printed"


def test_few_blocks_are_left_out() -> None:
    left_out = [f"{name_of(p)}:{b.line}" for p in existing("README.md") for b in runnable(p) if b.is_skipped]
    assert len(left_out) <= MAX_NOTEST, f"{len(left_out)} blocks say notest, at most {MAX_NOTEST} may: {left_out}"


@pytest.mark.parametrize("page", existing("README.md"), ids=name_of)
def test_pages_for_users_describe_what_is_there(page: Path) -> None:
    """Only the requirements and the decisions may say that something is planned."""
    if page != SPECS and page.parent.name != "decisions":
        promised = re.findall(r"(?:is|are) (?:planned|not yet built|not yet supported)|coming soon", page.read_text("utf-8"))
        assert promised == []


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for number, line in split(page.read_text(encoding="utf-8"))[1]:
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            link = next(group for group in match.groups() if group)
            if re.match(r"[a-z][a-z0-9+.-]*:|#", link, re.IGNORECASE):
                continue
            target = link.partition("#")[0].partition("?")[0]
            if target.startswith("/") or not (page.parent / target).exists():
                broken.append(f"{page.name}:{number}: {link}")
    return broken


@pytest.mark.parametrize("page", existing("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"), ids=name_of)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    assert broken_links(page) == []


SPECS = ROOT / "docs" / "concepts" / "specs.md"
NOT_IN_SOURCE = ("tests/", "bench/", "docs/")


def base(room: str) -> Path:
    return ROOT if room.startswith(NOT_IN_SOURCE) else ROOT / "src" / "foveate"


def untrue_rows(text: str, page: Path) -> list[str]:
    """What rows that say `built` or `partly` name and is not there: their rooms and their tests."""
    found = []
    for row in (line for line in text.splitlines() if re.match(r"\| \d{3}-\d+ \|", line)):
        id, _, rooms, tests, state = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        if state not in ("built", "partly"):
            continue
        named = re.findall(r"`([^`]+)`", rooms)
        links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", tests)
        found += [f"{id}: no room {room}" for room in named if not (base(room) / room).exists()]
        for name, target in links:
            file = page.parent / target
            if not file.is_file() or f"def test_{name}(" not in file.read_text(encoding="utf-8"):
                found.append(f"{id}: no test {name}")
        found += [f"{id}: names no {what}" for what, there in (("room", named), ("test", links)) if not there]
    return found


def test_what_is_built_has_its_room_and_its_test() -> None:
    assert untrue_rows(SPECS.read_text(encoding="utf-8"), SPECS) == []


def test_no_text_file_names_a_path_of_one_machine() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in sorted(set(filter(None, listing.stdout.split("\0")))):
        path = ROOT / name
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            found += [f"{name}:{text.count(chr(10), 0, m.end()) + 1}: {m[0].strip()}" for m in MACHINE_PATH.finditer(text)]
    assert found == []


# --- the checks themselves -----------------------------------------------------------------------------------------


def test_blocks_keep_their_line_and_their_info() -> None:
    python = "```python notest\nx = 1\n```\n"
    console = "  ```console exit=3\n  $ foveate why \\\n    a b\n  out\n  ```\n"
    blocks, prose = split(f"# A\n\n{python}\n- item\n{console}")
    assert [(b.language, b.line, b.is_skipped, b.exit_code) for b in blocks] == [
        ("python", 3, True, 0),
        ("console", 8, False, 3),
    ]
    assert commands(blocks[1].text) == [["why", "a", "b"]]
    assert (7, "- item") in prose


def test_longer_fence_holds_a_shorter_one() -> None:
    blocks, _ = split("````markdown\n```python\nraise SystemExit\n```\n````\n")
    assert [b.language for b in blocks] == ["markdown"]


def test_broken_link_is_named_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('[a](page.md#top) [b](https://example.org) `[c](no)`\n\n![d](gone.png "D")\n', encoding="utf-8")
    assert broken_links(page) == ["page.md:3: gone.png"]


def test_row_that_names_what_is_not_there_is_found() -> None:
    link = "[what_is_built_has_its_room_and_its_test](../../tests/test_docs.py)"
    rows = (
        f"| 000-01 | a | `engine/engine.py`, `tests/` | {link} | built |",
        f"| 000-02 | a \\| b | `gone.py` | {link} | partly |",
        "| 000-03 | a | `engine/engine.py` | [gone](../../tests/test_docs.py) | built |",
        "| 000-04 | a | – | – | built |",
        "| 000-05 | a | `gone.py` | – | planned |",
    )
    assert untrue_rows("\n".join(rows), SPECS) == [
        "000-02: no room gone.py", "000-03: no test gone", "000-04: names no room", "000-04: names no test",
    ]  # fmt: skip


def test_machine_path_is_recognised() -> None:
    assert MACHINE_PATH.search("see " + "/".join(["", "home", "ada", "x.py"]))
    assert not MACHINE_PATH.search("src/work/x.py, https://example.org/work/x")
