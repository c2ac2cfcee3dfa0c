"""The walkthroughs in CONTRIBUTING.md: their files exist, and what they add works."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute

import foveate
from foveate import Kind, Source, testing
from foveate.code import languages
from foveate.pipeline.sources import BUILTIN_SOURCES, SlotRequest, SourceContext
from foveate.records import render
from foveate.records.kinds import KINDS, Field
from foveate.server.http.routes import records
from foveate.types import Candidate

ROOT = Path(__file__).parents[1]
SECTIONS = dict(
    re.findall(r"### ([^\n]+)\n(.*?)(?=\n### |\n## )", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
)


def snippet(section: str, language: str) -> str:
    """Return the only code block of a language in a section."""
    (code,) = re.findall(rf"   ```{language}\n(.*?)   ```", SECTIONS[section], flags=re.DOTALL)
    return textwrap.dedent(code)


def test_the_walkthroughs_name_at_most_three_files_each_and_all_exist() -> None:
    assert list(SECTIONS) == [
        "A kind of record", "A source", "A language of code", "An endpoint", "An adapter of a framework",
    ]  # fmt: skip
    for title, text in SECTIONS.items():
        steps = re.findall(r"^(\d)\. `([^`]+)`", text, flags=re.MULTILINE)
        assert [number for number, _ in steps] == ["1", "2", "3"], title
        for _, path in steps:
            assert (ROOT / path).exists(), f"{title}: {path}"


@pytest.fixture
def risk() -> Iterator[Kind]:
    names: dict[str, Any] = {"Kind": Kind, "Field": Field, "render": render}
    kind = eval(snippet("A kind of record", "python"), names)
    yield kind
    KINDS.pop(kind.name, None)


def test_a_kind_added_as_described_is_stored_found_and_shown(risk: Kind) -> None:
    slots = tomllib.loads(snippet("A kind of record", "toml"))
    with testing.engine(kinds=[risk]) as engine:
        id = engine.add("risk", "The cache may run out of memory on Mondays", data={"likelihood": "high"}).id
        with pytest.raises(foveate.InputError, match="'maybe' is not a value"):
            engine.add("risk", "Another one", data={"likelihood": "maybe"})
        assert [hit.record.id for hit in engine.search("cache memory")] == [id]
        context = engine.context("Will the cache run out of memory?", overrides=slots)
        assert context.text == "## Known Information\n- The cache may run out of memory on Mondays\n"


def test_a_source_added_as_described_fills_a_slot() -> None:
    names: dict[str, Any] = {
        "Source": Source, "Sequence": Sequence, "SlotRequest": SlotRequest, "SourceContext": SourceContext,
        "Iterator": Iterator, "Candidate": Candidate,
    }  # fmt: skip
    exec(snippet("A source", "python"), names)
    assert "issues" not in {source.name for source in BUILTIN_SOURCES}
    with testing.engine(sources=[names["Issues"]()]) as engine:
        engine.add("issue", "Customers are charged twice", data={"title": "Charged twice"})
        slot = {"source": "issues", "heading": "Issues", "share": 10}
        context = engine.context("What is next?", overrides={"slots": {"issues": slot}})
        assert "## Issues\n#### Charged twice\nCustomers are charged twice\n" in context.text


def test_the_row_of_a_language_is_a_language() -> None:
    row = eval(snippet("A language of code", "python"), vars(languages))
    assert (row.name, row.files, row.package) == ("lua", ".lua", "tree_sitter_lua")
    assert row.name in languages.NAMED_LANGUAGES, "choose another example: this one is parsed by now"
    for row in languages.PARSED_LANGUAGES:
        assert (ROOT / "tests" / "code_samples" / f"{row.name}.txt").is_file() or row.name == "starlark"
        for name in (row.queries or row.name).split():
            assert (ROOT / "src" / "foveate" / "code" / "queries" / f"{name}.scm").is_file()


def test_an_endpoint_added_as_described_answers() -> None:
    with testing.engine() as engine:
        ids = [engine.add("fact", f"Fact number {n}").id for n in range(2)]
        engine.link(ids[0], "explains", ids[1])
        router = records.new_router("records")
        names = {**vars(records), "router": router}
        exec(snippet("An endpoint", "python"), names)
        (route,) = router.routes
        assert isinstance(route, APIRoute)
        assert route.path == "/v1/records/{id}/links"
        answer = route.endpoint(ids[0], SimpleNamespace(engine=engine))
        assert {"src": ids[0], "name": "explains", "dst": ids[1], "weight": 1.0} in json.loads(answer.body)["links"]


def test_the_adapter_is_python() -> None:
    compile(snippet("An adapter of a framework", "python"), "CONTRIBUTING.md", "exec")
