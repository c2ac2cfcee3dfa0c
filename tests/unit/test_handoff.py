"""Reading handoffs: the corpus of broken ones, the refusals, the variants, and time on hostile input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from foveate.errors import InputError
from foveate.tasks.handoff import MAX_BYTES, SCHEMA, STATUSES, json_schema, parse, template
from foveate.tasks.handoff.notes import MAX_PROBLEMS

FOLDER = Path(__file__).parents[1] / "handoffs"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
LISTS = [name for name, field in json_schema()["properties"].items() if field.get("type") == "array"]


def look(handoff: Any, path: str) -> Any:
    """What stands at `gotchas.0.issue`; `#` is the length."""
    for part in path.split(".", 1) if path.startswith("extra.") else path.split("."):
        if part == "#":
            return len(handoff)
        handoff = handoff[int(part)] if isinstance(handoff, list) else handoff[part]
    return handoff


# --- the corpus ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPECTED)
def test_the_corpus_is_read_as_a_careful_person_reads_it(name: str) -> None:
    expected = EXPECTED[name]
    data = (FOLDER / name).read_bytes()
    parsed = parse(data)
    assert parsed.method == expected["rung"], parsed.problems
    assert parsed.form == expected.get("form", parsed.form)
    assert {path: look(parsed.handoff, path) for path in expected["values"]} == expected["values"], parsed.problems
    Draft202012Validator(json_schema()).validate(parsed.handoff)
    if expected.get("clean"):
        assert parsed.problems == ()
    if parsed.method.startswith("repaired"):
        assert any(problem.startswith("Read with repairs: ") for problem in parsed.problems)
    assert all(problem.endswith(".") for problem in parsed.problems)


def test_every_file_of_the_corpus_has_its_expectations() -> None:
    assert {path.name for path in FOLDER.iterdir()} - {"expected.toml"} == set(EXPECTED)
    broken = [name for name, expected in EXPECTED.items() if not expected.get("clean")]
    assert len(broken) >= 70
    assert len(EXPECTED) - len(broken) >= 10
    methods = Counter(expected["rung"] for expected in EXPECTED.values())
    assert set(methods) == {"yaml", "json", "repaired yaml", "repaired json", "headings", "raw"}


def test_text_and_bytes_read_the_same() -> None:
    data = (FOLDER / "cjk.yaml").read_bytes()
    assert parse(data) == parse(data.decode())


# --- what is given back --------------------------------------------------------------------------------------------


def test_every_list_is_there_and_absent_texts_are_not() -> None:
    handoff = parse("summary: Done\n").handoff
    assert handoff == {
        "schema": SCHEMA,
        "status": "completed",
        "summary": "Done",
        **{name: [] for name in LISTS},
        "extra": {},
    }
    assert parse({"gotchas": ["x"]}).handoff["gotchas"] == [{"issue": "x", "severity": "medium"}]


def test_a_mapping_is_structured_and_its_raw_is_json() -> None:
    source = {"summary": "Done", "files_created": [{"path": "a.py", "lines": 12}], "when": date(2024, 5, 1)}
    parsed = parse(source)
    assert (parsed.method, parsed.form) == ("structured", "structured")
    assert json.loads(parsed.raw)["summary"] == "Done"
    assert parsed.handoff["files_created"] == [{"path": "a.py", "lines": "12"}]
    assert parsed.handoff["extra"] == {"when": "2024-05-01"}
    assert source["files_created"] == [{"path": "a.py", "lines": 12}]


def test_unknown_keys_are_kept_in_extra_and_named() -> None:
    parsed = parse({"summary": "x", "mood": "good", "gotchas": [{"issue": "a", "seen_by": "b"}]})
    assert parsed.handoff["extra"] == {"mood": "good", "gotchas[0].seen_by": "b"}
    assert "'mood' is not a field of the schema; its value is kept in 'extra'." in parsed.problems


VARIANTS: list[tuple[str, Any, Any]] = [
    ("status", "success", "completed"),
    ("status", "In Progress", "partial"),
    ("status", "failure", "failed"),
    ("status", "exploded", "partial"),
    ("status", "not completed yet", "partial"),
    ("status", "completed, with notes", "completed"),
    ("status", "failed, not blocked", "partial"),
    ("status", "nothing failed", "partial"),
    ("confidence", "85%", 0.85),
    ("confidence", 85, 0.85),
    ("confidence", "0.90", 0.9),
    ("confidence", "8/10", 0.8),
    ("confidence", "High", 0.9),
    ("gotchas", [{"issue": "a", "severity": "warn"}], [{"issue": "a", "severity": "medium"}]),
    ("gotchas", "none", []),
    ("gotchas", "- a\n- [high] b", [{"issue": "a", "severity": "medium"}, {"issue": "b", "severity": "high"}]),
    ("files_created", "src/a.py", [{"path": "src/a.py"}]),
    ("files_created", ["pkg/__init__.py: exports"], [{"path": "pkg/__init__.py", "purpose": "exports"}]),
    ("files_modified", [{"path": "a", "lines": [10, 20]}], [{"path": "a", "lines": "10-20"}]),
    (
        "files_modified",
        {"src/a.py": "new", "src/b.py": None},
        [{"path": "src/a.py", "purpose": "new"}, {"path": "src/b.py"}],
    ),
    ("evidence", [{"command": "make", "result": "ok"}], ["command: make; result: ok"]),
    ("decisions", [{"decision": "x", "rejected": "y, z"}], [{"decision": "x", "alternatives": ["y", "z"]}]),
    ("open_questions", ["[blocking] Who?"], [{"question": "Who?", "blocking": True}]),
    ("task_id", 7, "7"),
]


@pytest.mark.parametrize(("field", "written", "read"), VARIANTS)
def test_obvious_variants_are_understood(field: str, written: Any, read: Any) -> None:
    assert parse({"summary": "x", field: written}).handoff[field] == read


def test_what_cannot_be_read_is_kept_and_said() -> None:
    parsed = parse({"summary": "x", "confidence": "maybe", "gotchas": [{"severity": "high"}]})
    assert "confidence" not in parsed.handoff
    assert parsed.handoff["extra"] == {"confidence": "maybe", "gotchas[0]": {"severity": "high"}}
    assert "'confidence' holds 'maybe', which cannot be read; its value is kept in 'extra'." in parsed.problems


def test_fields_in_several_blocks_are_read_together() -> None:
    parsed = parse("```yaml\nsummary: a\n```\n\nand\n\n```yaml\ngotchas:\n  - issue: b\nstatus: partial\n```\n")
    assert (parsed.handoff["summary"], parsed.handoff["status"], len(parsed.handoff["gotchas"])) == ("a", "partial", 1)


def test_a_second_block_adds_fields_and_overwrites_none() -> None:
    example = "summary: An example\nstatus: failed\ngotchas:\n  - issue: b\nevidence: [make test]\n"
    best = "summary: Moved the cache\nstatus: completed\ntask_id: A-1\nconfidence: 0.9\ngotchas:\n  - issue: cold start\n"
    for blocks in ((example, best), (best, example)):
        parsed = parse("\n\n".join(f"```yaml\n{block}```" for block in blocks))
        assert (parsed.handoff["summary"], parsed.handoff["status"]) == ("Moved the cache", "completed")
        assert [gotcha["issue"] for gotcha in parsed.handoff["gotchas"]] == ["cold start"]
        assert parsed.handoff["evidence"] == ["make test"]
        assert parsed.problems == ("Several blocks hold fields; evidence came from another one.",)


def test_a_quoted_file_with_anchors_does_not_cost_the_handoff_beside_it() -> None:
    quoted = "x-all: &all\n  restart: always\nfiles_modified: [compose.yml]\nservices:\n  web:\n    <<: *all\n"
    parsed = parse(f"```yaml\nsummary: Done\nfiles_created: [a.py]\n```\n\nThe file:\n\n```yaml\n{quoted}```\n")
    assert (parsed.method, parsed.handoff["summary"], len(parsed.handoff["files_created"])) == ("yaml", "Done", 1)
    assert any("Another block" in problem for problem in parsed.problems)


def test_a_text_without_fields_is_kept_raw() -> None:
    text = "I gave up. " * 200
    parsed = parse(text)
    assert (parsed.method, parsed.raw) == ("raw", text)
    assert 400 < len(parsed.handoff["summary"]) <= 500
    assert parsed.problems[0].startswith("Nothing could be read as a handoff")


def test_broken_json_that_is_too_long_to_repair_is_kept_raw() -> None:
    text = json.dumps({"summary": "x", "evidence": ["run"] * 4000})[:-1]
    parsed = parse(text)
    assert (parsed.method, parsed.raw) == ("raw", text)
    assert "JSON of more than 16,384 characters is read only if it is valid" in parsed.problems[0]


@pytest.mark.parametrize(
    ("section", "field", "read"),
    [
        ("gotchas:\n  issue: a: b\n  severity: high\n", "gotchas", [{"issue": "a: b", "severity": "high"}]),
        ("evidence:\n- a: b\n\t- c\n", "evidence", ["a: b", "c"]),
        (
            "decisions:\n- decision: a: b\n  alternatives: [x, 'y, z', \"w\n",
            "decisions",
            [{"decision": "a: b", "alternatives": ["x", "y, z", "w"]}],
        ),
        (
            "extra:\n  port: 80\n  note: a: b\n  list:\n    - x: 1\n",
            "extra",
            {"port": 80, "note": "a: b", "list": [{"x": 1}]},
        ),
        ("gotchas:\n- issue: a: b\n  seen_by: c\n", "extra", {"gotchas[0].seen_by": "c"}),
        ("status: failed\n", "status", "failed"),
    ],
)
def test_a_broken_section_spoils_no_other(section: str, field: str, read: Any) -> None:
    for text in (f"{section}summary: x: y\n", f"summary: x: y\n{section}"):
        parsed = parse(text)
        assert (parsed.method, parsed.handoff["summary"], parsed.handoff[field]) == ("repaired yaml", "x: y", read)


def test_problems_do_not_grow_without_end() -> None:
    parsed = parse("summary: x\nevidence:\n" + "  - a: b: c\n" * 500)
    assert len(parsed.problems) <= MAX_PROBLEMS + 5
    assert len(parsed.handoff["evidence"]) == 500


# --- schema and template -------------------------------------------------------------------------------------------


def test_the_schema_is_valid_and_names_every_field() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["summary"]
    assert schema["properties"]["status"]["enum"] == list(STATUSES)
    assert all(field["description"] for field in schema["properties"].values())
    schema["properties"].clear()
    assert json_schema()["properties"], "each call gives its own"


@pytest.mark.parametrize("task", ["", "AUTH-1", 'a: "b" # c', "multi\nline"])
def test_the_template_reads_cleanly(task: str) -> None:
    text = template(task, name="Login: tokens")
    parsed = parse(text)
    assert (parsed.method, parsed.form, parsed.problems) == ("yaml", "front matter", ())
    assert parsed.handoff.get("task_id", "") == task
    filled = text.replace('summary: ""', "summary: Done").replace("gotchas: []", "gotchas:\n  - {issue: a, severity: low}")
    again = parse(filled)
    assert (again.clean, again.handoff["summary"], len(again.handoff["gotchas"])) == (True, "Done", 1)


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["", " \n\t", b"", b"\xef\xbb\xbf\n", "\u200b\n", "\0", {}])
def test_nothing_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="empty"):
        parse(source)


@pytest.mark.parametrize("source", ["x" * (MAX_BYTES + 1), "é" * (MAX_BYTES // 2 + 1), {"summary": "x" * MAX_BYTES}])
def test_too_much_is_refused_with_size_and_limit(source: Any) -> None:
    with pytest.raises(InputError, match=r"has 262,\d+ bytes; 262,144 are allowed"):
        parse(source)
    parse("x" * MAX_BYTES)


UNPARSED = ("headings", "raw")
"""The methods for a text that no parser can read."""


@pytest.mark.parametrize(
    "text",
    [
        "summary: &a Done\ntask_id: *a\n",
        "a: &a [x, x]\nb: &b [*a, *a]\nsummary: *b\n",
        "base: &b {x: 1}\nsummary: hi\ngotchas:\n  - <<: *b\n    issue: y\n",
        "summary: x\n<<: {status: failed}\n",
        "summary: Fixed: &a\ngotchas:\n  - issue: &a x: y\n  - issue: *a\n",
    ],
)
def test_aliases_and_merge_keys_are_kept_as_text_and_said(text: str) -> None:
    parsed = parse(text)
    assert (parsed.method, parsed.raw) == ("raw", text)
    assert not parsed.handoff.get("gotchas")  # `[*a]` is nothing to learn
    assert re.search(r"Write the (value|keys) out", parsed.problems[0])


def test_headings_beside_a_block_that_must_not_be_read_are_read() -> None:
    parsed = parse("```yaml\nsummary: &a x\nstatus: *a\n```\n\n## Gotchas\n\n- The cache is cold\n")
    assert (parsed.method, len(parsed.handoff["gotchas"])) == ("headings", 1)


@pytest.mark.parametrize(
    "text", ["summary: *.py is ignored\n", "summary: Salt & pepper, a * b\n", "evidence:\n  - &nbsp; stays\n  - *bold*\n"]
)
def test_stars_and_ampersands_in_prose_are_text(text: str) -> None:
    assert parse(text).method in ("yaml", "repaired yaml")


@pytest.mark.parametrize(
    "source",
    [
        '{"summary": ' + "[" * 60 + "]" * 60 + "}",
        "summary: " + "[" * 60 + "]" * 60,
        "extra:\n  bad: x: y\n" + "\n".join("  " * (n + 1) + "k:" for n in range(60)),
        "summary: x\nextra:\n" + "\n".join("  " * (n + 1) + "k:" for n in range(60)),
    ],
)
def test_deep_nesting_is_kept_as_text_and_said(source: str) -> None:
    parsed = parse(source)
    assert parsed.method in UNPARSED
    assert parsed.raw == source
    assert "nested more than 50 levels" in parsed.problems[0]


@pytest.mark.parametrize("source", ["[" * 5000, "a: &a [x]\nb: *a\n"])
def test_what_is_no_handoff_is_kept_as_text_whatever_its_form(source: str) -> None:
    parsed = parse(source)
    assert (parsed.method, parsed.raw) == ("raw", source)
    assert "Nothing could be read as a handoff" in parsed.problems[0]


def test_headings_beside_what_nobody_should_parse_are_read() -> None:
    parsed = parse("## Summary\nIt works.\n\n```yaml\nsummary: &a Done\ntask_id: *a\n```\n")
    assert (parsed.method, parsed.handoff["summary"].splitlines()[0]) == ("headings", "It works.")
    assert any("Write the value out" in problem for problem in parsed.problems)


READ = "```yaml\nsummary: Moved the cache\ngotchas:\n- issue: The keys are lost\n```\n"


@pytest.mark.parametrize(
    "other",
    [
        "```yaml\n.base: &base {image: python}\nstatus:\n  <<: *base\n```\n",
        "---\nsummary: &a Before\ntask_id: *a\n---\n",
        '```json\n{"summary": ' + "[" * 60 + "]" * 60 + "}\n```\n",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_block_that_nobody_should_parse_does_not_hide_one_that_can_be_read(other: str, first: bool) -> None:
    parsed = parse(f"{other}\n{READ}" if first else f"{READ}\n{other}")
    assert (parsed.method, parsed.handoff["summary"]) == ("yaml", "Moved the cache")
    assert [gotcha["issue"] for gotcha in parsed.handoff["gotchas"]] == ["The keys are lost"]
    assert any("Write" in problem for problem in parsed.problems)


@pytest.mark.slow
def test_values_that_hold_themselves_are_refused() -> None:
    loop: dict[str, Any] = {"summary": "x"}
    loop["extra"] = loop
    shared: Any = "x"
    for _ in range(40):
        shared = [shared, shared]
    for source in (loop, {"summary": "x", "extra": {"y": shared}}):
        with pytest.raises(InputError):
            parse(source)


def test_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="not list"):
        parse([{"summary": "x"}])  # type: ignore[arg-type]


def test_python_tags_are_text(tmp_path: Path) -> None:
    target = tmp_path / "made"
    parsed = parse(f"summary: !!python/object/apply:os.mkdir ['{target}']\n")
    assert not target.exists()
    assert parsed.handoff["summary"].startswith("!!python/object/apply:os.mkdir")


# --- time ----------------------------------------------------------------------------------------------------------

HOSTILE: list[tuple[str, str]] = [
    ("", "["),
    ("", '{"'),
    ('{"summary": "', '\\"'),
    ("", '["a'),
    ("summary: ", '"'),
    ("", "`"),
    ("", "```\n"),
    ("summary: ", ": "),
    ("gotchas:\n", "-"),
    ("gotchas: x: y\n", "- issue: a: b\n"),
    ("decisions: [", "a,"),
    ("gotchas:\n", "summary: a: b\n"),
    ("", "---\nsummary: a\n"),
    ("", "## Gotchas\n- a\n"),
    ("gotchas: a", " "),
    ("## Gotchas\n", "**"),
    ("## Summary\n", "<!--"),
    ("", "a: &a\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("start", "piece"), HOSTILE)
def test_hostile_input_takes_no_more_than_seconds(start: str, piece: str) -> None:
    text = start + piece * ((MAX_BYTES - len(start)) // len(piece))
    began = time.process_time()
    with suppress(InputError):
        parse(text)
    assert time.process_time() - began < 5


def test_the_parsers_are_loaded_when_they_are_needed() -> None:
    code = (
        "import sys, foveate.tasks.handoff as h; h.parse({'summary': 'x'}); print([m for m in sys.modules if m in sys.argv])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "ruamel.yaml", "json_repair"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
