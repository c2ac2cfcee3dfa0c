"""001, fresh context, in a repository. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import NotFound
from foveate.eval.systems.baselines import build_fts5_index
from foveate.pipeline.profiles import resolve
from foveate.receipts.codec import to_json
from foveate.receipts.metrics import ContextStats, Sizes
from foveate.testing import FixedClock, counting_ids, engine
from records import add_record

PARCEL: Mapping[str, str] = {
    "README.md": "# Parcel\n\nParcel tracks shipments for small web shops.\n\n## Architecture\n\n"
    "Handlers validate input and call services, services own transactions, and only `store.py` speaks SQL.\n\n"
    "A shipment is created by a shop, handed to a carrier, and closed by a receipt or by a return. Carriers push their "
    "events to one endpoint; each event is stored as it came, and the state of a shipment is worked out from its events.\n",
    "AGENTS.md": "Run `pytest -q` before you finish.\n",
    "pyproject.toml": '[project]\nname = "parcel"\ndependencies = ["fastapi"]\n\n'
    '[project.optional-dependencies]\ndev = ["pytest"]\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "src/parcel/login.py": '''"""Log users in."""

from parcel.tokens import sign_token
from parcel.user import find_user


def login(name: str, password: str) -> str:
    """A signed token for a user who gave the right password."""
    user = find_user(name)
    if user is None or not user.check_password(password):
        raise PermissionError(name)
    return sign_token({"sub": user.id})
''',
    "src/parcel/tokens.py": '''"""JSON web tokens."""


class InvalidToken(Exception):
    """A token that was changed, or that has run out."""


def sign_token(claims: dict) -> str:
    """The claims as a signed JWT."""
    return "signed:" + repr(claims)


def verify_token(token: str) -> dict:
    """Verify the signature of a JWT, and give its claims."""
    if not token.startswith("signed:"):
        raise InvalidToken(token)
    return eval(token.removeprefix("signed:"))
''',
    "src/parcel/user.py": '''"""Users."""

from parcel.store import query_one


def find_user(name: str):
    """The user of a name."""
    return query_one("SELECT * FROM users WHERE name = ?", name)
''',
    "src/parcel/store.py": '"""SQL, and nowhere else."""\n\n\ndef query_one(sql: str, *values):\n    return None\n',
    "tests/test_login.py": "from parcel.login import login\n\n\ndef test_login():\n    assert login\n",
}
TASK: Mapping[str, Any] = {
    "name": "Add user authentication",
    "description": "Verify the JWT of each request",
    "files": ["src/parcel/login.py"],
    "test_criteria": "All auth tests pass",
    "acceptance_criteria": ["Login works", "Token validation works"],
    "depends_on": ["src/parcel/user.py"],
    "estimated_time": 4,
    "key": "task-001",
}
SHOP: Mapping[str, str] = {
    "package.json": '{"name": "my-project", "dependencies": {"express": "4"}, "devDependencies": {"vitest": "1"}}',
    "README.md": "# my-project\n\nMy-project sells garden tools to small shops over an HTTP API.\n",
    "src/auth/login.ts": """import { findUser } from '../users/user';
import { signToken } from './token';

/** Log a user in and return a JWT. */
export async function login(name: string, password: string): Promise<string> {
  const user = await findUser(name);
  if (!user || !user.checkPassword(password)) throw new Error('denied');
  return signToken({ sub: user.id });
}
""",
    "src/auth/token.ts": """/** Sign the claims of a JWT. */
export function signToken(claims: object): string {
  return jwt.sign(claims, key);
}

/** Verify a JWT token and return its claims. */
export function verifyToken(token: string): object {
  return jwt.verify(token, key) as object;
}
""",
    "src/auth/middleware.ts": """/** Express middleware that rejects requests without authentication. */
export function requireAuth(req: any, res: any, next: any) {
  try { req.user = verifyToken(req.headers.authorization); next(); } catch { res.status(401).end(); }
}
""",
    "src/users/user.ts": "export async function findUser(name: string): Promise<User | null> { return null; }\n",
    "src/shop/cart.ts": "export class Cart { items: string[] = []; put(item: string) { this.items.push(item); } }\n",
}
QUICK_START: Mapping[str, Any] = {
    "key": "task-001",
    "name": "Add user authentication",
    "description": "Implement JWT-based authentication",
    "files": ["src/auth/login.ts"],
    "test_criteria": "All auth tests pass",
    "acceptance_criteria": ["Login works", "Token validation works"],
    "depends_on": ["src/users/user.ts"],
    "estimated_time": 4,
}
"""The task of 001's Quick Start, in its words."""
ON_TOPIC = (
    "A JWT is signed with RS256, so that services verify it without the secret",
    "Access tokens expire after 15 minutes and refresh tokens after 30 days",
    "Express middleware reads the bearer token from the Authorization header",
    "Passwords are hashed with argon2id in the users table",
    "Login attempts are rate limited for each account, or a whole office is locked out",
    "Authentication is stateless: there is no session table",
    "To rotate the signing key of the tokens: add the new key, deploy, remove the old one after a day",
    "The login endpoint is POST /auth/login and returns 401 on bad credentials",
    "Validation of input is done with zod schemas, one beside each route",
)
OFF_TOPIC = (
    "Lunch is at noon on the roof terrace",
    "Invoices are PDF files made by weasyprint",
    "The staging disk fills up when thumbnails are generated",
    "The warehouse in Lyon closes at six",
    "Dashboards are built in Grafana",
    "Every migration has a down step",
    "The newsletter goes out on Thursday",
    "To release: tag, build the image, watch the canary",
    "The search index was rebuilt in March after the outage",
)
ABOUT_THE_TASK = (
    ("decision", "Tokens are signed with RS256, so that other services can verify them"),
    ("decision", "We chose short-lived access tokens and a refresh token in a cookie"),
    ("fact", "The staging server accepts a fixed test login"),
    ("fact", "Passwords are hashed with argon2id"),
    ("gotcha", "The clocks of two hosts differ by up to a minute; JWT validation needs leeway"),
    ("gotcha", "Express drops the Authorization header behind the old proxy"),
    ("pattern", "Middleware that rejects a request answers 401 and says nothing more"),
    ("procedure", "To rotate the signing key: publish the new one, wait a day, remove the old one."),
    ("episode", "The last attempt at authentication failed because sessions were kept in memory"),
)
"""What a team knows that has such a task; none of it repeats the task."""
ABOUT_OTHER_THINGS = (
    ("decision", "Reports are rendered on the server"),
    ("decision", "All dates are stored in UTC"),
    ("decision", "We moved the stand-up to 10:30"),
    ("fact", "Lunch is at noon"),
    ("fact", "Invoices are due within 30 days"),
    ("fact", "The logo is an SVG"),
    ("fact", "Vitest runs in CI on every push"),
    ("gotcha", "The CSV export breaks on semicolons"),
    ("gotcha", "Image uploads fail above 8 MB"),
    ("pattern", "Components are one file each"),
    ("pattern", "Every migration can be undone"),
    ("procedure", "To release: tag, wait for CI, publish the notes."),
    ("episode", "The search index was rebuilt in March and took a night"),
    ("note", "Ana works on the mobile app"),
    ("note", "Tests of the importer take four minutes"),
)
ALONE = {"slots": {"files": {"max_items": 2}}}
"""The task's own files and no others: what else is found comes in definitions."""


@pytest.fixture
def parcel(tmp_path: Path) -> Iterator[foveate.Engine]:
    """001's task in a small repository under git, with memories."""
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    with engine(tmp_path, files=PARCEL, profile="task-files") as parcel:
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Log users in"]):
            subprocess.run(["git", *arguments], cwd=tmp_path, env={**os.environ, **who}, check=True)
        parcel.add("identity", "You implement one task at a time.")
        for kind, text in (*ABOUT_THE_TASK, *ABOUT_OTHER_THINGS):
            add_record(parcel, kind, text, **({"name": text.partition(":")[0]} if kind == "procedure" else {}))
        parcel.tasks.add(**TASK)
        yield parcel


def parts(context: foveate.Context) -> dict[str, str]:
    return {section.name: section.content for section in context.sections}


def ids(context: foveate.Context, slot: str) -> list[str]:
    return [item.id for item in context.items if item.section == slot]


# --- what is in it -------------------------------------------------------------------------------------------------


def test_a_fresh_context_holds_project_task_files_code_and_memories(parcel: foveate.Engine) -> None:
    """001-12, 001-13, 001-14, 001-15, 001-16, 001-46, 001-47, 001-51, 001-52, 001-53, 001-87, 001-88"""
    context = parcel.context(task="task-001", code_query=TASK["description"], overrides=ALONE)
    said = parts(context)
    assert list(said) == ["system_prompt", "codebase_docs", "task_spec", "repo_map", "files", "code", "memories"]
    assert said["system_prompt"] == "You implement one task at a time.\n"
    for part in ("Parcel tracks shipments", "only `store.py` speaks SQL", "Run `pytest -q` before you finish", "`pytest`"):
        assert part in said["codebase_docs"]
    assert "Token validation works" in said["task_spec"]
    assert "src/parcel/tokens.py\n" in said["repo_map"]
    assert "  def sign_token(claims: dict) -> str" in said["repo_map"]
    assert said["files"].startswith("## Relevant Files\nsrc/parcel/login.py\n```python\n" + PARCEL["src/parcel/login.py"])
    assert "raise InvalidToken(token)" in said["code"]
    assert "Tokens are signed with RS256" in said["memories"]
    assert "Lunch" not in context.text


def test_memories_about_the_task_are_found_among_others(parcel: foveate.Engine) -> None:
    """001-16: of nine memories about the document's task, in words of their own, five may be shown and four are."""
    parcel.tasks.add(
        **{**TASK, "key": "quick-start", "description": "Implement JWT-based authentication", "files": [], "depends_on": []}
    )
    context = parcel.context(task="quick-start")
    shown = {item.record.text for item in context.items if item.section == "memories"}
    about = {text for _, text in ABOUT_THE_TASK}
    assert len(shown & about) >= 4
    assert len(shown - about) <= 1
    stored = [text for _, text in (*ABOUT_THE_TASK, *ABOUT_OTHER_THINGS)]
    task = (
        "Add user authentication",
        "Implement JWT-based authentication",
        *TASK["acceptance_criteria"],
        TASK["test_criteria"],
    )
    best = [stored[n] for n in build_fts5_index(stored)(" ".join(task))[:5]]
    assert len(about.intersection(best)) < len(shown & about), "SQLite FTS5 finds three with its best five"


@pytest.mark.parametrize(
    ("left_out", "kept"),
    [
        ("repo_map", {"codebase_docs", "files", "code", "memories"}),
        ("codebase_docs", {"repo_map", "files", "code", "memories"}),
        ("files", {"repo_map", "codebase_docs", "code", "memories"}),
        ("code", {"repo_map", "codebase_docs", "files", "memories"}),
        ("memories", {"repo_map", "codebase_docs", "files", "code"}),
    ],
)
def test_each_component_is_built_for_itself(parcel: foveate.Engine, left_out: str, kept: set[str]) -> None:
    """001-93, 001-94: without one of the five, the four others are built as before."""
    whole = parts(parcel.context(task="task-001", code_query=TASK["description"], overrides=ALONE))
    slots = {**ALONE["slots"], left_out: {"remove": True}}
    rest = parts(parcel.context(task="task-001", code_query=TASK["description"], overrides={"slots": slots}))
    assert left_out in whole
    assert left_out not in rest
    assert kept <= rest.keys()
    unaffected = kept - ({"code"} if left_out == "files" else set())  # definitions of a file that is not shown join `code`
    assert {name: rest[name] for name in unaffected} == {name: whole[name] for name in unaffected}


def test_files_of_the_task_come_first_then_those_it_depends_on(parcel: foveate.Engine) -> None:
    """001-14, 001-33, 001-51"""
    shown = ids(parcel.context(task="task-001", code_query="verify JWT claims, signature"), "files")
    assert shown == ["file:src/parcel/login.py", "file:src/parcel/user.py"]


def test_the_code_is_searched_for_what_the_call_says(parcel: foveate.Engine) -> None:
    """001-03, 001-35, 001-65, 001-86, 001-120"""
    tokens = parcel.context(task="task-001", code_query="verify the signature of a JWT", overrides=ALONE, budget=100_000)
    assert ids(tokens, "code")[0] == "code:src/parcel/tokens.py::verify_token"
    assert len(ids(tokens, "code")) <= 5
    rows = parcel.context(task="task-001", code_query="query_one", overrides=ALONE)
    assert ids(rows, "code") == ["code:src/parcel/store.py::query_one"]
    assert parcel.receipts.get(rows).request.code_query == "query_one"
    assert ids(parcel.context(task="task-001", code_query="zeppelin hangar", overrides=ALONE), "code") == []


def test_what_is_shown_as_a_file_is_not_shown_again_as_a_definition(parcel: foveate.Engine) -> None:
    """001-15, 001-51, 001-52"""
    context = parcel.context(task="task-001", code_query="login verify_token")
    shown = {id.removeprefix("file:") for id in ids(context, "files")}
    assert "src/parcel/login.py" in shown
    assert not [id for id in ids(context, "code") if id.removeprefix("code:").partition("::")[0] in shown]


def test_the_project_is_described_by_its_files_unless_its_settings_say_otherwise(parcel: foveate.Engine) -> None:
    """001-21, 001-22, 001-23, 001-24, 001-25, 001-48, 001-96, 001-100, 001-110"""
    line = "Name: parcel; Language: python; Framework: fastapi; Test framework: pytest"
    assert line in parts(parcel.context("users"))["codebase_docs"]
    root = parcel.code.root
    with foveate.open(root / "src" / "parcel", personal=False) as inside:  # any path of the project will do
        assert inside.code.root == root
    settings = '[project]\nname = "Parcel"\nlanguage = "Python 3"\nframework = "none"\ntest_framework = "nose"\n'
    with engine(files={**PARCEL, ".foveate/config.toml": settings}, profile="task-files") as told:
        line = "Name: Parcel; Language: Python 3; Framework: none; Test framework: nose"
        assert line in parts(told.context("users"))["codebase_docs"]


def test_structural_parts_are_the_same_for_each_task_and_hold_no_clock(parcel: foveate.Engine) -> None:
    """001-46, 001-47, 001-49, 001-57"""
    one, other = parcel.context(task="task-001"), parcel.context("Remove the store")
    assert one.prefix == other.prefix
    assert one.text[: one.prefix.chars].rstrip().endswith(parts(one)["codebase_docs"].rstrip())
    assert parcel.context(task="task-001", now="2030-01-01T00:00Z").text == one.text
    assert to_json(parcel.receipts.get(one))["created"] == "2026-01-05T09:00:00.000Z"


def test_a_project_can_be_indexed_and_is_looked_at_as_it_is_now(parcel: foveate.Engine) -> None:
    """001-85"""
    assert parcel.code.workspace.refresh().files == len(PARCEL)
    parcel.context("users")
    (parcel.code.root / "src/parcel/audit.py").write_text("def write_audit_trail(event):\n    return event\n", "utf-8")
    parcel.code.workspace.refresh()
    assert "def write_audit_trail" in parcel.context("write_audit_trail").text


# --- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slot", "heading"), [("repo_map", "## Repository Map"), ("codebase_docs", "## Codebase")])
def test_map_and_docs_are_there_unless_the_call_leaves_them_out(parcel: foveate.Engine, slot: str, heading: str) -> None:
    """001-60, 001-61"""
    assert heading in parcel.context(task="task-001").text
    assert heading not in parcel.context(task="task-001", overrides={"slots": {slot: {"remove": True}}}).text


def test_ten_files_and_five_definitions_unless_the_call_says_otherwise() -> None:
    """001-62, 001-63"""
    names = "abcdefghijklmnopqrstuvwxyz"
    files = {f"src/ship_{c}.py": f"def track_shipment_{c}(parcel):\n    return parcel\n" for c in names}
    with engine(files=files, profile="task-files") as ships:

        def counts(**slots: Any) -> tuple[int, int]:
            context = ships.context("track shipment parcel", overrides={"slots": slots} if slots else None)
            return len(ids(context, "files")), len(ids(context, "code"))

        assert counts() == (10, 5)
        assert counts(files={"max_items": 3}, code={"max_items": 7}) == (3, 7)


def test_small_files_are_whole_and_large_ones_come_in_whole_parts() -> None:
    """001-99"""
    names = [f"rule{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    many = "\n\n".join(f"def {name}(invoice):\n    return invoice['{name}']\n" for name in names)
    wide = "\n\n".join(f"def {name}(note):\n    return '{name * 200}'\n" for name in names[:50])
    files = {"small.py": "def track(shipment):\n    return shipment\n", "large.py": many, "wide.py": wide}
    with engine(files=files, profile="task-files") as bills:
        bills.tasks.add("Change it", objective="Change ruleck and ruleak of an order", files=list(files), key="t")
        context = bills.context(task="t", overrides={"max_file_chars": 5_000})
        shown = parts(context)["files"]
        assert "small.py\n```python\ndef track(shipment):\n    return shipment\n```" in shown
        assert "large.py (398 lines, in parts)" in shown
        assert "def ruleck(invoice):\n    return invoice['ruleck']\n" in shown
        assert "left out: rule" in shown
        assert f"\ndef ruleak(note):\n    return '{'ruleak' * 200}'\n" in shown
        assert "wide.py (198 lines, in parts)" in shown
        assert len(shown) < 20_000
        assert "Shown in parts: large.py and 1 more." in " ".join(bills.receipts.validate(context).suggestions)
        assert wide in parts(bills.context(task="t"))["files"]  # 100,000 characters unless told
    assert resolve("task-files").max_file_chars == 100_000


def test_a_project_sets_its_own_budget() -> None:
    """001-77, 001-102, 001-103, 001-119"""
    profile = """
extends = "task-files"
reserve = 20000

[slots]
system_prompt = { tokens = 3000 }
repo_map = { tokens = 5000 }
codebase_docs = { tokens = 4000 }
task_spec = { tokens = 2000 }
code = { min_relevance = 0.2 }
"""
    with engine(files={**PARCEL, ".foveate/profiles/ours.toml": profile}, profile="ours") as ours:
        budget = ours.context("users").budget
    own = {slot.name: slot.base for slot in budget.slots}
    fixed = [own[name] for name in ("system_prompt", "repo_map", "codebase_docs", "task_spec")]
    assert (fixed, budget.reserve, budget.total) == ([3000, 5000, 4000, 2000], 20_000, 150_000)
    assert 69_590 <= own["files"] <= 69_600  # 60 % of what is left, less the framing of the messages


# --- what is missing -----------------------------------------------------------------------------------------------


def test_without_code_to_look_at_the_rest_is_built_and_the_receipt_says_so() -> None:
    """001-26, 001-101, 001-104"""
    with engine(files=PARCEL, profile="task-files", code=False) as blind:
        blind.add("decision", "Shipments are tracked by users")
        context = blind.context("How are shipments tracked by users?")
        assert ids(context, "memories") == ["decision_0001"]
        assert [section.name for section in context.sections] == ["memories"]
        notes = {report["source"]: report["note"] for report in to_json(blind.receipts.get(context))["sources"]}
        assert notes["code"].startswith("No code to look at")
        assert notes["search"] == ""
        (warning,) = blind.receipts.validate(context).warnings
        assert warning.endswith("Left empty: codebase_docs, repo_map, files, code.")


def test_the_quick_start_shows_files_code_and_memories() -> None:
    """001-16, 001-35, 001-51, 001-52, 001-53, 001-86"""
    with engine(files=SHOP, profile="task-files") as shop:
        for text in (*ON_TOPIC, *OFF_TOPIC):
            shop.add("fact", text)
        shop.tasks.add(**QUICK_START)
        for options in ({}, {"code_query": "authentication JWT token"}):
            context = shop.context(task="task-001", budget=100_000, **options)
            said = parts(context)
            assert ids(context, "files") == ["file:src/auth/login.ts", "file:src/users/user.ts"]
            assert {"verifyToken", "signToken", "requireAuth"} <= {id.partition("::")[2] for id in ids(context, "code")}
            assert "cart.ts" not in said["code"]
            assert len(ids(context, "memories")) == 5
            assert not any(text in context.text for text in OFF_TOPIC)
        everything = {"slots": {"memories": {"max_items": 20}}}
        wide = shop.context(task="task-001", overrides=everything)
        assert [text for text in ON_TOPIC if text not in parts(wide)["memories"]] == []
        assert len(ids(wide, "memories")) == len(ON_TOPIC) == 9


def test_the_description_of_a_task_is_searched_for() -> None:
    """001-28, 001-29"""
    with engine(profile="task-files") as memory:
        memory.add("decision", "Webhooks are signed with the key of the shop")
        memory.tasks.add("Finish the work", key="plain")
        memory.tasks.add("Finish the work", description="Sign the webhooks", key="described")
        assert "Webhooks are signed" not in memory.context(task="plain").text
        assert "Webhooks are signed" in memory.context(task="described").text
        assert "Webhooks are signed" in memory.context("What is left to do?", task="described").text


def test_a_folder_that_is_not_a_repository_gives_the_files_of_a_task_a_map_and_a_warning(tmp_path: Path) -> None:
    """001-26, 001-101, 001-104, 001-105, 001-106"""
    files = {name: text for name, text in SHOP.items() if name != "package.json"}
    with engine(tmp_path, files={**files, ".env": "KEY=secret"}, profile="task-files", code=None) as shop:
        shop.add("fact", ON_TOPIC[0])
        shop.tasks.add(**{**QUICK_START, "files": ["src/auth/login.ts", "src/auth/gone.ts", ".env", "../outside.txt"]})
        context = shop.context(task="task-001")
        said = parts(context)
        assert ids(context, "files") == ["file:src/auth/login.ts", "file:src/users/user.ts"]
        assert SHOP["src/auth/login.ts"].strip() in said["files"]
        assert "src/auth/ (3 files, 3 ts)" in said["repo_map"]
        assert f"Name: {tmp_path.name}" in said["codebase_docs"]
        assert "sells garden tools" in said["codebase_docs"]
        assert ids(context, "memories") == ["fact_0001"]
        assert "code" not in said
        assert ".env" not in said["repo_map"]
        search_off, *others = context.warnings
        assert search_off.startswith("Code search is off")
        assert "`foveate init --code`" in search_off
        assert others == [
            "src/auth/gone.ts is not shown: there is no such file.",
            "../outside.txt is not shown: there is no such file.",
            ".env is not shown: may hold secrets.",
        ]
        replayed = shop.receipts.replay(context)
        assert (replayed.same, replayed.text) == (True, context.text)
        assert SHOP["src/auth/login.ts"].strip() in shop.expand("file:src/auth/login.ts")["content"]
        (tmp_path / "src/auth/login.ts").unlink()
        with pytest.raises(NotFound):
            shop.expand("file:src/auth/login.ts")
    with engine(tmp_path, profile="task-files", code=False, ids=counting_ids()) as blind:
        context = blind.context(task="task-001")
        assert (context.warnings, ids(context, "files")) == ((), [])


def test_a_folder_without_code_says_nothing_about_code_unless_the_profile_is_for_it(tmp_path: Path) -> None:
    """001-104"""
    with engine(tmp_path, files={"notes/monday.txt": "Sunny.\n"}, code=None) as notes:
        notes.tasks.add("Correct Monday", files=["notes/monday.txt"], key="monday")
        assert notes.context("What was the weather?").warnings == ()
        quiet = notes.context(task="monday")
        assert (quiet.profile, quiet.warnings) == ("task", ())
        context = notes.context(task="monday", profile="coding")
        assert "Sunny." in context.text
        assert context.warnings[0].startswith("Code search is off")


def test_without_code_to_parse_a_basic_structure_stands_in() -> None:
    """001-105, 001-106"""
    notes = {f"notes/day_{n}.txt": "Sunny.\n" for n in range(3)}
    with engine(files=notes, profile="task-files") as weather:
        said = parts(weather.context("zeppelin hangar"))
    assert "notes/ (3 files, 3 txt)" in said["repo_map"]
    assert "Name: project" in said["codebase_docs"]
    assert "- `notes` (3 files)" in said["codebase_docs"]


def test_a_file_that_the_task_names_and_that_is_not_there_is_a_warning(parcel: foveate.Engine) -> None:
    """001-83"""
    parcel.tasks.add("Write the audit", files=["src/parcel/audit.py"], key="audit")
    context = parcel.context(task="audit")
    assert "src/parcel/audit.py is not shown: the index has no such file." in parcel.receipts.validate(context).warnings


# --- validation and statistics -------------------------------------------------------------------------------------


def test_validation_breaks_the_tokens_down_by_part(parcel: foveate.Engine) -> None:
    """001-42, 001-79, 001-80, 001-81, 001-82"""
    context = parcel.context(task="task-001", code_query=TASK["description"], overrides=ALONE)
    found = parcel.receipts.validate(context)
    assert (found.valid, found.token_count, found.max_tokens) == (True, context.tokens, 134_000)
    filled = ("system_prompt", "codebase_docs", "task_spec", "repo_map", "files", "code", "memories")
    assert list(found.breakdown) == [*filled, "reserved", "total"]
    assert all(found.breakdown[name] > 0 for name in filled)
    assert abs(sum(found.breakdown[name] for name in filled) + context.budget.framing - context.tokens) <= len(filled)
    assert found.breakdown["total"] == context.tokens + 16_000
    assert found.warnings == ()


def test_a_suggested_budget_gives_the_same_context(parcel: foveate.Engine) -> None:
    """001-84, 001-119, 001-122"""
    options: dict[str, Any] = {"task": "task-001", "code_query": TASK["description"], "overrides": ALONE}
    context = parcel.context(**options)
    (said,) = [line for line in parcel.receipts.validate(context).suggestions if "would do" in line]
    enough = int(said.partition("a budget of ")[2].partition(" ")[0].replace(",", ""))
    assert 16_000 < enough < 40_000
    smaller = parcel.context(**options, budget=enough)
    assert smaller.text == context.text
    assert not [
        line for line in parcel.receipts.validate(smaller).suggestions if "would do" in line or "did not fit" in line
    ]


def test_suggestions_say_what_was_left_out_and_which_setting_would_show_it(parcel: foveate.Engine) -> None:
    """001-84"""

    def said(**options: Any) -> str:
        return " ".join(parcel.receipts.validate(parcel.context(**options)).suggestions)

    small = said(task="task-001", budget=1500)
    assert "in 'codebase_docs' did not fit" in small
    assert "raise the budget (1,500 now), or slots.codebase_docs.tokens; 'codebase_docs' got 30 tokens." in small
    floor = {"slots": {"memories": {"min_relevance": 0.99}}}
    assert "for 'memories' has 0." in said(task="task-001", overrides=floor)
    assert "slots.memories.min_relevance is 0.99" in said(task="task-001", overrides=floor)
    few = {"slots": {"files": {"max_items": 1}}}
    assert "1 for slots.files.max_items (1)" in said(task="task-001", code_query="zeppelin", overrides=few)
    assert "Pass `code_query` with words that the code uses" in said(query="zeppelin hangar")
    parcel.tasks.add("Think about users", key="bare")
    assert "The task names no file that exists here" in said(task="bare")
    assert "names no file" not in said(task="task-001")


def test_statistics_over_contexts(parcel: foveate.Engine) -> None:
    """001-44, 001-45, 001-123"""
    assert parcel.store.stats().contexts == ContextStats(
        contexts=0, tokens=Sizes(0, 0), utilisation=Sizes(0, 0), by_profile={}, by_section={}
    )
    claim = parcel.tasks.claim("task-001", agent="coder")
    assert claim is not None
    large = claim.context
    small = parcel.context("Where are users found?", profile="map")
    stats = parcel.store.stats()
    found = stats.contexts
    assert (found.contexts, stats.claims.active) == (2, 1)
    assert found.tokens == Sizes(round((large.tokens + small.tokens) / 2), large.tokens)
    assert found.utilisation.max == round(small.tokens / 1024, 4)
    assert found.by_profile == {"task-files": 1, "map": 1}
    drawn = [slot.used for context in (large, small) for slot in context.budget.slots if slot.name == "repo_map"]
    assert found.by_section["repo_map"] == Sizes(round(sum(drawn) / 2), max(drawn))
    parcel.tasks.complete("task-001", "Done", agent="coder")
    assert parcel.store.stats().claims.active == 0


# --- for users' own tests ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_system_for_tests_has_code_and_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """001-95, 001-117"""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def run() -> tuple[str, str]:
        with engine(files=PARCEL, clock=FixedClock(), ids=counting_ids(), embedder="hash:64") as system:
            system.add("decision", "Users log in with a password")
            system.tasks.add(**TASK)
            context = system.context(task="task-001", profile="task-files")
            return context.id, context.text

    first = run()
    assert "def login(name: str, password: str)" in first[1]
    assert first == run()
    gc.collect()
    assert list(tmp_path.iterdir()) == []
