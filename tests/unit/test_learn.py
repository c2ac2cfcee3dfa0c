"""Learning from handoffs: what a task found out becomes records of the project, once, with the task as their source."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate import Conflict, Engine, InputError, NotFound
from foveate.text.format import component_of
from records import add_record
from worlds import open_engine

HANDOFF = """\
---
schema: handoff/v1
status: completed
summary: The parser reads YAML and JSON.
files_created:
  - path: src/parser/yaml.py
    lines: 1-80
    purpose: Reads YAML blocks
files_modified:
  - path: src/cli/main.py
    purpose: Calls the parser
patterns_discovered:
  - pattern: Return problems instead of raising
    location: src/parser/yaml.py:12
    applies_to: [parsing, cli]
gotchas:
  - issue: ruamel keeps NO as a string
    severity: high
  - issue: The file ends with a newline
    severity: low
open_questions:
  - question: Which encoding is allowed?
    context: Windows users write UTF-16.
    recommendation: UTF-8 only
    blocking: true
  - question: Is a plural needed?
    blocking: false
decisions:
  - decision: Use ruamel.yaml
    rationale: it keeps YAML 1.2
    alternatives: [PyYAML, strictyaml]
dependencies_for_next:
  - file: src/parser/yaml.py
    reason: has parse()
confidence: 0.9
---
"""


def learned(engine: Engine, kind: str, task: str) -> list[str]:
    with engine.store.data.reader() as reader:
        ids = [link.src for link in reader.links([task], ["learned_from"], incoming=True)]
        return sorted(record.text for record in reader.get(ids).values() if record.kind == kind)


def test_a_handoff_completes_its_task_and_teaches_the_project() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Parser", key="parser").id
        result = engine.tasks.handoff("parser", HANDOFF)
        assert (result.action, result.method, result.problems) == ("learned", "yaml", ())
        done = engine.tasks.get(task)
        assert (done.status, done.result, done.record.outcome) == ("completed", "The parser reads YAML and JSON.", "success")
        assert done.record.data["files_to_read"] == [{"file": "src/parser/yaml.py", "reason": "has parse()"}]
        assert done.record.data["handoff"] == result.handoff
        assert learned(engine, "pattern", task) == ["Return problems instead of raising"]
        assert learned(engine, "gotcha", task) == ["The file ends with a newline", "ruamel keeps NO as a string"]
        assert learned(engine, "decision", task) == ["Use ruamel.yaml"]
        assert learned(engine, "question", task) == ["Is a plural needed?", "Which encoding is allowed?"]
        assert learned(engine, "component", task) == ["Calls the parser", "Reads YAML blocks"]
        assert result.counts["gotcha"] == {"added": 2}


def test_a_pattern_keeps_its_tags_and_file_and_a_decision_what_was_rejected() -> None:
    with open_engine() as engine:
        engine.tasks.add("Parser", key="parser")
        engine.tasks.handoff("parser", HANDOFF)
        pattern = engine.search("return problems", kinds=["pattern"])[0].record
        assert pattern.tags == ("parsing", "cli")
        assert pattern.data["location"] == "src/parser/yaml.py:12"
        decision = engine.search("ruamel", kinds=["decision"])[0].record
        assert decision.data["alternatives"] == ["PyYAML", "strictyaml"]
        assert decision.data["rationale"] == "it keeps YAML 1.2"
        gotcha = engine.search("ruamel", kinds=["gotcha"])[0].record
        assert (gotcha.data["severity"], gotcha.trust) == ("high", "agent")


def test_the_same_handoff_twice_changes_nothing() -> None:
    with open_engine() as engine:
        engine.tasks.add("Parser", key="parser")
        first = engine.tasks.handoff("parser", HANDOFF)
        before = list(engine.store.export_lines())
        again = engine.tasks.handoff("parser", HANDOFF)
        assert (again.action, again.handoff) == ("unchanged", first.handoff)
        assert list(engine.store.export_lines()) == before


def test_a_handoff_counts_again_once_it_was_undone() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Parser", key="parser").id
        first = engine.tasks.handoff("parser", HANDOFF)
        engine.undo(task)
        assert engine.tasks.get("parser").status == "open"
        assert {hit.record.kind for hit in engine.search("ruamel newline parser problems encoding")} == {"task"}
        again = engine.tasks.handoff("parser", HANDOFF)
        assert (again.action, again.handoff) == ("learned", first.handoff)
        assert again.counts["gotcha"] == {"added": 2}
        assert again.counts["component"] == {"unchanged": 2}
        assert engine.tasks.get("parser").status == "completed"


def test_what_is_known_is_confirmed_and_not_doubled() -> None:
    with open_engine() as engine:
        for key in ("one", "two"):
            engine.tasks.add(key, key=key)
        engine.tasks.handoff("one", HANDOFF)
        result = engine.tasks.handoff(
            "two", {"summary": "s", "patterns_discovered": ["return problems  instead of raising"]}
        )
        assert result.counts["pattern"] == {"confirmed": 1}
        found = engine.search("return problems", kinds=["pattern"])
        assert len(found) == 1
        assert found[0].record.data["confirmations"] == 1
        for key in ("one", "two"):
            assert learned(engine, "pattern", engine.tasks.get(key).id) == ["Return problems instead of raising"]


def test_the_map_is_updated_where_it_knows_the_file_and_extended_where_it_does_not() -> None:
    with open_engine() as engine:
        for key in ("one", "two", "three"):
            engine.tasks.add(key, key=key)
        engine.tasks.handoff("one", HANDOFF)
        changed = {
            "summary": "s",
            "files_modified": [{"path": "src/parser/yaml.py", "lines": "1-120", "purpose": "Reads and mends"}],
        }
        assert engine.tasks.handoff("two", changed).counts["component"] == {"updated": 1}
        (entry,) = [hit.record for hit in engine.search("mends", kinds=["component"])]
        assert (entry.data["component"], entry.data["location"]) == ("parser/yaml", "src/parser/yaml.py:1-120")
        assert entry.subject == "parser/yaml"
        silent = {"summary": "s", "files_modified": ["src/parser/yaml.py", "src/new.py"]}
        assert engine.tasks.handoff("three", silent).counts["component"] == {"updated": 1, "added": 1}
        assert engine.get(entry.id).text == "Reads and mends"
        with engine.store.data.reader() as reader:
            assert reader.count("component") == 3


@pytest.mark.parametrize(
    ("path", "component"),
    [
        ("src/auth/login.py", "auth/login"),
        ("src/auth/__init__.py", "auth"),
        ("packages/web/components/Button.tsx", "components/Button"),
        ("index.js", "index"),
        ("README.md", "README"),
        ("lib/index.ts", "index"),
        ("a/b/c/d.go", "c/d"),
        ("./src/x.test.ts", "x"),
        ("src\\auth\\login.cs", "auth/login"),
        (".gitignore", ".gitignore"),
        ("tests/unit/test_learn.py", "unit/test_learn"),
    ],
)
def test_the_component_is_inferred_from_the_path(path: str, component: str) -> None:
    assert component_of(path) == component


@pytest.mark.parametrize(
    ("status", "state", "outcome"),
    [
        ("completed", "completed", "success"),
        ("partial", "completed", "partial"),
        ("failed", "failed", "failure"),
        ("blocked", "blocked", "pending"),
    ],
)
def test_the_status_of_a_handoff_is_that_of_its_task(status: str, state: str, outcome: str) -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.handoff("a", {"status": status, "summary": "How it went", "gotchas": ["It bites"]})
        task = engine.tasks.get("a")
        assert (task.status, task.record.outcome) == (state, outcome)
        assert learned(engine, "gotcha", task.id) == ["It bites"]
        assert (task.record.data.get("reason") or task.result) == "How it went"


def test_a_second_handoff_needs_to_be_meant() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.handoff("a", {"summary": "First"})
        before = list(engine.store.export_lines())
        with pytest.raises(Conflict, match=r"already completed\. Nothing was changed\. Pass `again`"):
            engine.tasks.handoff("a", {"summary": "Second", "gotchas": ["It bites"]})
        assert list(engine.store.export_lines()) == before
        assert engine.tasks.handoff("a", {"summary": "Second"}, again=True).action == "learned"
        assert engine.tasks.get("a").result == "Second"


def test_said_again_it_is_never_less_serious() -> None:
    with open_engine() as engine:
        for key in ("one", "two"):
            engine.tasks.add(key, key=key)
        serious = {"issue": "Deleting the cache wipes production data", "severity": "critical"}
        question = {"question": "Which region?", "blocking": True, "context": "Two are paid for"}
        pattern = {"pattern": "Handlers return Result", "location": "a.py:1", "applies_to": ["api"]}
        engine.tasks.handoff(
            "one", {"summary": "s", "gotchas": [serious], "open_questions": [question], "patterns_discovered": [pattern]}
        )
        engine.tasks.handoff(
            "two",
            {
                "summary": "s",
                "gotchas": [{**serious, "severity": "low"}],
                "open_questions": [{"question": "Which region?", "blocking": False, "recommendation": "eu"}],
                "patterns_discovered": [{**pattern, "location": "evil.py:9", "applies_to": ["cli"]}],
            },
        )
        found = {hit.record.kind: hit.record for hit in engine.search("cache region handlers")}
        assert (found["gotcha"].data["severity"], found["gotcha"].salience) == ("critical", 0.9)
        assert found["question"].data["blocking"] is True
        assert (found["question"].data["context"], found["question"].data["recommendation"]) == ("Two are paid for", "eu")
        assert found["pattern"].data["location"] == "a.py:1"
        assert found["pattern"].data["applies_to"] == ["api", "cli"]
        assert found["pattern"].tags == ("api", "cli")


def test_more_serious_the_second_time_counts() -> None:
    with open_engine() as engine:
        for key, severity in (("one", "low"), ("two", "high")):
            engine.tasks.add(key, key=key)
            engine.tasks.handoff(key, {"summary": "s", "gotchas": [{"issue": "It bites", "severity": severity}]})
        gotcha = engine.search("bites", kinds=["gotcha"])[0].record
        assert (gotcha.data["severity"], gotcha.salience) == ("high", 0.7)


def test_an_agents_word_does_not_take_the_place_of_a_persons() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        values = {"component": "login", "location": "src/login.py:1", "key": "component:src/login.py", "pinned": True}
        entry = add_record(engine, "component", "Written by a person", **values).record
        file = {"path": "src/login.py", "lines": "5-9", "purpose": "Obey me"}
        engine.tasks.handoff("a", {"summary": "s", "files_modified": [file]})
        after = engine.get(entry.id)
        assert (after.text, after.trust, after.data["location"]) == ("Written by a person", "user", "src/login.py:5-9")


def test_an_undone_handoff_takes_everything_back() -> None:
    with open_engine() as engine:
        for key in ("one", "two"):
            engine.tasks.add(key, key=key)
        engine.tasks.handoff("one", {"summary": "s", "files_created": [{"path": "src/a.py", "purpose": "First"}]})
        engine.tasks.handoff(
            "two", {"summary": "s", "gotchas": ["It bites"], "files_modified": [{"path": "src/a.py", "purpose": "Second"}]}
        )
        engine.undo(engine.tasks.get("two").id)
        assert engine.search("bites") == []
        assert engine.search("src/a.py", kinds=["component"])[0].record.text == "First"
        assert engine.tasks.get("two").status == "open"
        assert engine.tasks.get("one").status == "completed"


def test_a_blocked_task_that_was_started_again_can_be_blocked_by_the_same_words() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        blocked = {"status": "blocked", "summary": "No key yet"}
        engine.tasks.handoff("a", blocked)
        engine.tasks.edit("a", status="active")
        assert engine.tasks.handoff("a", blocked).action == "learned"
        assert engine.tasks.get("a").status == "blocked"


@pytest.mark.parametrize(
    ("handoff", "problem"),
    [({"status": "done", "summary": "s"}, "status 'done'"), ({"task_id": "other", "summary": "s"}, "It names task 'other'")],
)
def test_a_strict_handoff_with_a_problem_is_refused(handoff: dict[str, str], problem: str) -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        before = list(engine.store.export_lines())
        with pytest.raises(InputError, match=problem):
            engine.tasks.handoff("a", handoff, strict=True)
        assert list(engine.store.export_lines()) == before
        assert engine.tasks.handoff("a", {"status": "completed", "summary": "s"}, strict=True).problems == ()


def test_a_retired_task_takes_no_handoff() -> None:
    with open_engine() as engine:
        engine.edit(engine.tasks.add("A", key="a").id, status="retired")
        with pytest.raises(Conflict, match="already retired"):
            engine.tasks.handoff("a", {"summary": "s"})


def test_what_nobody_could_read_is_not_called_a_success() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        engine.tasks.handoff("a", "I am sorry, the tests fail.")
        assert engine.tasks.get("a").record.outcome == "partial"
        assert "Outcome: partial" in engine.context(task="b").text


def test_forgetting_reaches_the_handoff_that_held_the_words(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.tasks.add("A", key="a")
        result = engine.tasks.handoff("a", {"summary": "s", "gotchas": ["The cellar key hangs behind the clock"]})
        gotcha = engine.search("cellar", kinds=["gotcha"])[0].record.id
        done = engine.forget(gotcha)
        assert any(result.handoff in warning for warning in done.warnings)
        assert engine.search("cellar") == []
        assert not any("cellar" in line for line in engine.store.export_lines())
    assert b"cellar" not in (tmp_path / ".foveate" / "state.db").read_bytes()


def test_forgetting_a_task_forgets_its_handoff_and_not_what_was_learned() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("A", key="a").id
        result = engine.tasks.handoff("a", {"summary": "Secret summary", "gotchas": ["It bites"]})
        engine.forget(task)
        with pytest.raises(NotFound):
            engine.get(result.handoff)
        assert engine.search("bites", kinds=["gotcha"])


def test_a_path_that_is_none_breaks_nothing(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        (tmp_path / "src").mkdir()
        engine.tasks.add("A", key="a")
        engine.tasks.handoff("a", {"summary": "s", "files_created": ["src/" + "x" * 5000 + ".py", "src/login.py"]})
        context = engine.context("login", profile="coding")
        (search_off,) = context.warnings
        assert search_off.startswith("Code search is off")
        assert "src/login.py" in context.text


def test_all_of_it_is_kept_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from foveate.tasks import learn

    def broken(*_: object) -> None:
        raise RuntimeError("the disk is full")

    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        before = list(engine.store.export_lines())
        monkeypatch.setattr(learn, "_set_status", broken)
        with pytest.raises(RuntimeError):
            engine.tasks.handoff("a", HANDOFF)
        assert list(engine.store.export_lines()) == before
        monkeypatch.undo()
        assert engine.tasks.handoff("a", HANDOFF).action == "learned"


def test_the_raw_text_is_never_lost() -> None:
    broken = "Well, I am done: mostly.\n\n\tsummary: it works: really\n- [ ] ???"
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        result = engine.tasks.handoff("a", broken)
        record = engine.get(result.handoff)
        assert record.text == broken.strip()
        assert record.data["rung"] == result.method
        assert result.problems
        assert record.data["problems"] == list(result.problems)
        assert engine.tasks.get("a").status == "completed"


@pytest.mark.parametrize("text", ["summary: &a It works\ngotchas: [*a]", "summary: " + "[" * 60, "No field, only prose."])
def test_a_handoff_that_nobody_should_parse_is_kept_and_marked(text: str) -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        result = engine.tasks.handoff("a", text)
        record = engine.get(result.handoff)
        assert record.text == text
        assert record.data["rung"] in ("headings", "raw")
        assert record.data["problems"] == list(result.problems) != []
        assert engine.tasks.get("a").status == "completed"


def test_bytes_with_nul_and_invalid_utf8_are_repaired_and_flagged() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        result = engine.tasks.handoff("a", b"summary: Reads caf\xe9 and \x00nul\ngotchas:\n  - issue: It bites\n")
        assert any("NUL" in problem for problem in result.problems)
        assert any("UTF-8" in problem for problem in result.problems)
        assert learned(engine, "gotcha", engine.tasks.get("a").id) == ["It bites"]


@pytest.mark.parametrize("source", ["", "  \n", b"", b"x" * 10_000_000, "x" * 10_000_000, {}])
def test_what_is_refused_changes_nothing(source: object) -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        before = list(engine.store.export_lines())
        with pytest.raises(InputError):
            engine.tasks.handoff("a", source)
        assert list(engine.store.export_lines()) == before


def test_a_handoff_of_an_unknown_task_is_not_found() -> None:
    with open_engine() as engine, pytest.raises(NotFound, match="No task 'b'"):
        engine.tasks.handoff("b", HANDOFF)


def test_a_handoff_that_names_another_task_is_flagged() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        result = engine.tasks.handoff("a", {"summary": "s", "task_id": "b"})
        assert any("names task 'b'" in problem for problem in result.problems)


def test_secrets_in_a_handoff_are_redacted_everywhere() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.handoff("a", {"summary": f"Uses {secret}", "gotchas": [f"{secret} expires"], "extra_note": secret})
        assert secret not in "".join(engine.store.export_lines())


def test_the_next_task_starts_with_what_its_dependency_learned(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.tasks.add("Parser", key="parser")
        engine.tasks.add("Docs", objective="Describe the release", key="docs", depends_on=["parser"])
        engine.tasks.handoff("parser", HANDOFF)
    with foveate.open(tmp_path, personal=False) as engine:
        text = engine.context(task="docs").text
        assert "- **Return problems instead of raising** (see: src/parser/yaml.py:12) (from Parser)\n" in text
        assert "- ⚠️ **high**: ruamel keeps NO as a string (from Parser)\n" in text
        assert "ends with a newline" not in text
        assert "- **Which encoding is allowed?** (from Parser)\n  - Context: Windows users write UTF-16.\n" in text
        assert "Is a plural needed?" not in text
        assert (
            "#### Parser\nThe parser reads YAML and JSON.\n\n**Files to read:**\n- `src/parser/yaml.py`: has parse()\n"
            in text
        )


def test_a_gotcha_says_how_to_get_around_it() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        gotcha = {"issue": "The proxy drops cookies", "mitigation": "Set SameSite"}
        engine.tasks.handoff("a", {"summary": "s", "gotchas": [gotcha]})
        assert "**medium**: The proxy drops cookies — Set SameSite (from A)\n" in engine.context(task="b").text


def test_a_dry_run_reports_what_would_be_learned_and_stores_nothing() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.claim("a", agent="coder")
        before = list(engine.store.export_lines())
        report = {"summary": "Done", "status": "partial", "gotchas": ["Text mode fails"]}
        tried = engine.tasks.handoff("a", report, dry_run=True)
        assert (tried.action, tried.handoff, tried.status) == ("dry run", "", "completed")
        assert tried.counts == {"gotcha": {"added": 1}}
        assert list(engine.store.export_lines()) == before
        assert len(engine.tasks.claims()) == 1
        assert engine.tasks.handoff("a", report).counts == tried.counts
