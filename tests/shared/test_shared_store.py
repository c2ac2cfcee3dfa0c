"""A project whose state is in PostgreSQL: opened by URL, by settings, by the environment; and every front end on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

import foveate
from foveate.cli import cli
from foveate.errors import InputError, StoreError
from foveate.integrations.hooks import program
from foveate.project import project
from foveate.project.locate import DIR_NAME
from foveate.server.http import Settings, create_app
from foveate.server.tokens import Tokens
from foveate.store.database_url import mask_passwords
from postgres_server import LocalServer, Server, server

FACT = "Deploys happen on Tuesdays"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    fresh = postgres.database()
    yield fresh
    postgres.drop(fresh)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shop(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose settings name the shared store, and a fact in it."""
    monkeypatch.setenv("DATABASE_URL", url)
    ok("init", "--store", "$DATABASE_URL", "--project", "shop")
    ok("add", "fact", FACT)
    return folder


@pytest.fixture
def ada(postgres: Server, url: str) -> str:
    """The URL of a role that was granted nothing."""
    if not postgres.execute("select 1 from pg_roles where rolname = 'ada'"):
        postgres.execute("create role ada login")
    return url.replace("//postgres@", "//ada@")


def run(*args: str, **env: str) -> Result:
    return CliRunner().invoke(cli, list(args), env=env, catch_exceptions=False)


def ok(*args: str, **env: str) -> str:
    result = run(*args, **env)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def document(*args: str, **env: str) -> Any:
    return json.loads(ok(*args, "--json", **env))


def texts(engine: foveate.Engine) -> list[str]:
    return [hit.record.text for hit in engine.search("deploys")]


# --- opening -------------------------------------------------------------------------------------------------------


def test_a_url_opens_the_same_engine_and_leaves_no_file(url: str, folder: Path) -> None:
    for name in (url, url.replace("postgresql://", "postgres://")):
        with foveate.open(name, project="shop") as engine:
            engine.add("fact", FACT)
            assert FACT in engine.context("When do we deploy?").text
            assert texts(engine) == [FACT]
    with foveate.open(url, project="other") as engine:
        assert texts(engine) == []
    assert list(folder.iterdir()) == []


def test_a_folder_keeps_its_settings_profiles_and_code(url: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("")
    (folder / "cart.py").write_text("def add_to_cart(): ...\n")
    (folder / DIR_NAME).mkdir()
    (folder / DIR_NAME / "config.toml").write_text('user = "ben"\n[project]\nname = "shop"\n')
    with foveate.open(folder, store=url) as engine:
        assert (engine.scope.project, engine.scope.user) == ("shop", "ben")
        assert "add_to_cart" in engine.context("add_to_cart", profile="coding").text
    assert (folder / DIR_NAME / "code.db").exists()
    assert not (folder / DIR_NAME / "state.db").exists()


def test_the_name_of_the_project_is_never_guessed(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="the project needs a name"):
        foveate.open(url)
    with pytest.raises(InputError, match="the project needs a name"):
        foveate.open(folder, store=url)
    monkeypatch.setenv("FOVEATE_PROJECT", "shop")
    with foveate.open(url) as engine:
        assert engine.scope.project == "shop"
    with foveate.open(folder) as engine:  # a file of one's own holds one project
        assert engine.scope.project == "main"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ('store = "state.db"', "must begin with postgresql://"),
        ("store = 5", "store must be str"),
        ('store = "postgresql://$FOVEATE_GONE@h/d"', "FOVEATE_GONE, which is not set"),
    ],
)
def test_settings_that_name_no_store_are_refused(folder: Path, config: str, problem: str) -> None:
    (folder / DIR_NAME).mkdir()
    (folder / DIR_NAME / "config.toml").write_text(config)
    with pytest.raises(InputError, match=problem):
        foveate.open(folder)


def test_a_path_is_no_url(url: str) -> None:
    with pytest.raises(InputError, match="as a str"):
        foveate.open(Path(url))
    with pytest.raises(InputError, match="already"):
        foveate.open(url, store=url)


def test_the_environment_does_not_redirect_what_a_program_opens(url: str, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FOVEATE_STORE", url)
    monkeypatch.setenv("FOVEATE_PROJECT", "shop")
    with foveate.open(folder) as engine:
        engine.add("fact", FACT)
    assert (folder / DIR_NAME / "state.db").exists()


# --- the command line ----------------------------------------------------------------------------------------------


def test_init_writes_the_settings_once(shop: Path, url: str) -> None:
    config = shop / DIR_NAME / "config.toml"
    assert project.locate_project(shop).settings == {"store": "$DATABASE_URL", "project": {"name": "shop"}}
    before = config.read_text()
    found = document("init")
    assert (found["project"], found["configured"]) == ("shop", False)
    assert config.read_text() == before
    assert run("init", "--store", url, "--project", "other").exit_code == 2
    assert document("stats")["project"] == "shop"


def test_init_keeps_what_the_settings_say(url: str, folder: Path) -> None:
    (folder / DIR_NAME).mkdir()
    (folder / DIR_NAME / "config.toml").write_text("budget = 900\n[code]\nenabled = false\n")
    ok("init", "--store", url, "--project", "shop")
    found = project.locate_project(folder).settings
    assert found == {"store": url, "budget": 900, "code": {"enabled": False}, "project": {"name": "shop"}}


def test_init_writes_no_password_and_nothing_half(folder: Path, url: str) -> None:
    refused = run("init", "--store", url.replace("postgres@", "postgres:s3cret@"), "--project", "shop")
    assert refused.exit_code == 2
    assert "does not belong into" in refused.stderr
    refused = run("init", "--store", "postgresql://ada@127.0.0.1:1/shop", "--project", "shop")
    assert refused.exit_code == 1
    assert "s3cret" not in refused.stderr
    assert list(folder.iterdir()) == []


def test_init_does_not_hide_a_file(folder: Path, url: str) -> None:
    ok("init")
    refused = run("init", "--store", url, "--project", "shop")
    assert refused.exit_code == 2
    assert "foveate store backup" in refused.stderr


def test_store_and_project_can_be_said_for_one_call_or_by_the_environment(shop: Path, url: str) -> None:
    assert FACT in ok("search", "deploys")
    assert FACT not in ok("search", "deploys", "--project", "other")
    elsewhere = shop / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    (elsewhere / DIR_NAME).mkdir()
    assert FACT in ok("--store", url, "--project", "shop", "search", "deploys")
    assert FACT in ok("search", "deploys", FOVEATE_STORE=url, FOVEATE_PROJECT="shop")
    assert run("search", "deploys", FOVEATE_STORE=url).exit_code == 2
    assert run("search", "deploys").exit_code == 2  # no store here
    assert FACT in ok("search", "deploys", "--store", str(shop), FOVEATE_STORE="postgresql://nobody@127.0.0.1:1/x")


def test_a_database_without_our_tables_says_to_make_them(folder: Path, url: str) -> None:
    refused = run("stats", "--store", url, "--project", "shop")
    assert refused.exit_code == 1
    assert "foveate init" in refused.stderr


def test_doctor_tells_server_role_and_projects(shop: Path, url: str) -> None:
    found = document("doctor")
    assert found["ok"]
    facts = found["facts"]
    assert facts["postgresql"].startswith("18")
    assert {"pgvector", "schema", "latency"} <= facts.keys()
    assert facts["role"] == "postgres (owner of the store)"
    assert (facts["project"], facts["projects"]) == ("shop", "shop")
    (shop / DIR_NAME / "state.db").touch()
    assert any("is not used" in warning for warning in document("doctor")["warnings"])


def test_roles_see_what_they_were_granted(shop: Path, ada: str) -> None:
    assert run("stats", DATABASE_URL=ada).exit_code == 4
    assert ok("init", "--grant", "ada") == "ada  sees shop"
    assert run("init", "--grant", "ada", "--project", "bokos").exit_code == 3
    ok("add", "fact", "Books are read", "--project", "books")
    ok("init", "--grant", "ada", "--project", "books")
    assert document("doctor")["facts"]["roles"] == "ada: books, shop"
    assert FACT in ok("search", "deploys", DATABASE_URL=ada)
    found = document("doctor", DATABASE_URL=ada)["facts"]
    assert (found["role"], found["projects"]) == ("ada (sees what it was granted)", "books, shop")
    assert any(
        "init --grant ada --project payroll" in said
        for said in document("doctor", "--project", "payroll", DATABASE_URL=ada)["warnings"]
    )
    assert run("init", "--grant", "ada", "--project", "payroll", DATABASE_URL=ada).exit_code == 3  # not there, for her
    assert run("add", "fact", "Mine", "--project", "payroll", DATABASE_URL=ada).exit_code == 4
    ok("init", "--revoke", "ada", "--project", "books")
    assert ok("init", "--revoke", "ada") == "ada  no longer sees shop"
    assert run("search", "deploys", DATABASE_URL=ada).exit_code == 4


def test_a_file_has_no_roles(folder: Path) -> None:
    ok("init")
    for option in ("--grant", "--revoke"):
        refused = run("init", option, "ada")
        assert refused.exit_code == 2
        assert "has no roles" in refused.stderr


def test_every_verb_that_used_a_file_works_or_says_why_not(shop: Path) -> None:
    ok("store", "export", "out.jsonl")
    assert FACT in Path("out.jsonl").read_text()
    dry_runs = (("store", "maintain", "--dry-run"), ("install", "claude", "--dry-run"))
    for verb in (("store", "maintain"), ("token",), *dry_runs):
        assert run(*verb).exit_code == 0, verb
    Path("pyproject.toml").touch()
    Path("cart.py").write_text("def add_to_cart(): ...\n")
    assert "add_to_cart" in ok("code", "map")


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalServer]:
    """A server that asks for a password."""
    with server() as running:
        running.execute("create role ada login password 'right'")
        (running.folder / "data" / "pg_hba.conf").write_text("local all ada scram-sha-256\nlocal all postgres trust\n")
        running.restart()
        yield running


@pytest.mark.parametrize(
    ("user", "database", "code", "advice"),
    [
        ("ada:s3cret", "postgres", 4, "password is wrong"),
        ("ada:right", "postgres", 1, "foveate init"),
        ("postgres:s3cret", "nope", 1, "no such database"),
    ],
)
@pytest.mark.parametrize("verb", ["doctor", "stats"])
def test_a_store_that_cannot_be_opened_says_what_to_do(
    guarded: LocalServer, folder: Path, verb: str, user: str, database: str, code: int, advice: str
) -> None:
    url = f"postgresql://{user}@/{database}?host={quote(str(guarded.folder), safe='')}"
    refused = run(verb, "--project", "shop", "--store", url, "--json")
    assert refused.exit_code == code
    assert advice in refused.stderr
    assert "s3cret" not in refused.output


def test_a_role_that_may_not_create_tables_is_told_who_may(guarded: LocalServer, folder: Path) -> None:
    url = f"postgresql://ada:right@/postgres?host={quote(str(guarded.folder), safe='')}&password=right"
    refused = run("init", "--project", "shop", FOVEATE_STORE=url)
    assert refused.exit_code in (1, 4)
    assert "owner" in refused.stderr
    assert "right@" not in refused.stderr


# --- service, tokens, hooks ----------------------------------------------------------------------------------------


def test_a_token_decides_which_project_is_served(shop: Path) -> None:
    ok("add", "fact", "Deploys of the books happen never", "--project", "books")
    secrets = {name: document("token", "create", name, "--project", name)["token"] for name in ("shop", "books", "nothing")}
    own = document("token", "create", "own")
    assert own["project"] == "shop"
    place = project.locate_project(shop)
    with (
        foveate.open(shop) as engine,
        TestClient(
            create_app(engine, settings=Settings(require_token=True, tokens=place.tokens_file)), base_url="http://127.0.0.1"
        ) as client,
    ):

        def found(secret: str) -> list[str]:
            headers = {"Authorization": f"Bearer {secret}"}
            answer = client.post("/v1/search", json={"query": "deploys"}, headers=headers)
            assert answer.status_code == 200, answer.text
            return [hit["record"]["text"] for hit in answer.json()["hits"]]

        assert found(secrets["shop"]) == found(own["token"]) == [FACT]
        assert found(secrets["books"]) == ["Deploys of the books happen never"]
        assert found(secrets["nothing"]) == []
        admin = document("token", "create", "admin", "--allow", "admin", "--project", "books")["token"]
        health = client.get("/readyz?full=true", headers={"Authorization": f"Bearer {admin}"}).json()
        assert health["ok"] is True
        assert "facts" not in health  # they would name other projects


def test_a_service_whose_role_may_not_says_so(shop: Path, ada: str) -> None:
    ok("init", "--grant", "ada")
    tokens = Tokens(shop / "tokens.json")
    _, secret = tokens.create("web", ["memory:write"], "books")
    with (
        foveate.open(ada, project="shop") as engine,
        TestClient(
            create_app(engine, settings=Settings(require_token=True, tokens=shop / "tokens.json")),
            base_url="http://127.0.0.1",
        ) as client,
    ):
        answer = client.post(
            "/v1/records", json={"kind": "fact", "text": "Mine"}, headers={"Authorization": f"Bearer {secret}"}
        )
    assert answer.status_code == 403
    assert "init --grant" in answer.json()["detail"]


def hooked(folder: Path, session: str = "one", **env: str) -> str:
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "cwd": str(folder),
        "prompt": "When do we deploy?",
    }
    done = subprocess.run(
        [sys.executable, "-m", "foveate.integrations.hooks.program", "claude"],
        input=json.dumps(event).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **env},
    )
    assert done.returncode == 0
    return done.stdout.decode()


def test_hooks_answer_from_the_shared_store(shop: Path, url: str) -> None:
    assert program.root_of({"cwd": str(shop)}) == str(shop)
    assert FACT in hooked(shop)
    (shop / DIR_NAME / "config.toml").unlink()
    assert program.root_of({"cwd": str(shop)}) == ""
    assert FACT in hooked(shop, "two", FOVEATE_STORE=url, FOVEATE_PROJECT="shop")


def test_settings_that_came_with_a_repository_send_no_prompt_anywhere(shop: Path, url: str) -> None:
    for words in (["init", "-q"], ["add", "-f", ".foveate/config.toml"]):
        subprocess.run(["git", *words], cwd=shop, check=True)
    assert hooked(shop) == ""
    assert "config.toml is not used: it is tracked by git" in (shop / DIR_NAME / "hook.log").read_text()
    assert FACT in hooked(shop, FOVEATE_STORE=url, FOVEATE_PROJECT="shop")  # whose environment it is


def test_doctor_says_that_settings_which_came_with_a_repository_were_accepted(shop: Path, url: str) -> None:
    settings = shop / DIR_NAME / "config.toml"
    for words in (["init", "-q"], ["add", "-f", ".foveate/config.toml"]):
        subprocess.run(["git", *words], cwd=shop, check=True)
    settings.write_text(settings.read_text().replace("$DATABASE_URL", url))
    assert run("doctor").exit_code == 1
    assert run("doctor", "--accept", str(settings), "--yes").exit_code == 0
    (said,) = [warning for warning in document("doctor")["warnings"] if "is tracked by git, and you accepted it" in warning]
    assert str(settings) in said
    assert mask_passwords(url) in said


def test_an_evaluation_does_not_write_to_a_shared_store(shop: Path) -> None:
    Path("cases.jsonl").write_text('{"store": ".", "question": "When do we deploy?", "expected": ["x"]}\n')
    refused = run("eval", "run", "own", "cases.jsonl")
    assert refused.exit_code == 2
    assert "Name a copy of it" in refused.stderr


def test_a_driver_that_is_missing_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for module in [name for name in sys.modules if name.startswith("foveate.store.postgres")]:
            patch.delitem(sys.modules, module)
        patch.setitem(sys.modules, "psycopg", None)  # an import of it fails, as if it were not installed
        with pytest.raises(InputError, match=r"pip install foveate\[postgres\]"):
            foveate.open(url, project="shop")


def test_a_url_in_another_state_is_an_error_of_the_store(folder: Path) -> None:
    with pytest.raises(StoreError, match="nothing listens there") as caught:
        foveate.open("postgresql://ada:s3cret@127.0.0.1:1/x", project="shop")
    assert "s3cret" not in str(caught.value)
