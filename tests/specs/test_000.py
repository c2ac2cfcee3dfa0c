"""000, computed context: what of it works. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import Context, InputError, NotFound, testing
from foveate.pipeline.signals import DOMAINS
from foveate.receipts.codec import to_json
from foveate.tasks.task import Task
from records import add_record
from worlds import ALONE, DEPENDENT, TASK, clock, counting_ids, open_engine

TOPICS = ("login", "billing", "search", "upload", "export")


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="coding") as engine:
        yield engine


@pytest.fixture
def plain() -> Iterator[foveate.Engine]:
    """An engine that leaves the profile to the request: `task` for a task."""
    with open_engine() as engine:
        yield engine


def content(context: Context, name: str) -> str:
    return next((section.content for section in context.sections if section.name == name), "")


def shown(context: Context, name: str) -> list[str]:
    return [item.id for item in context.items if item.section == name]


def knowledge(engine: foveate.Engine) -> None:
    """More than any task needs, of every sort."""
    for topic in TOPICS:
        for n in range(30):
            engine.add("pattern", f"The {topic} module follows pattern p{n} for its {topic} handlers")
            engine.add(
                "component",
                f"Part c{n} of {topic}",
                data={"component": f"{topic} part {n}", "location": f"src/{topic}/part{n}.py"},
            )
            engine.add("gotcha", f"The {topic} module breaks when flag g{n} is set")
            engine.add("decision", f"The {topic} module uses library d{n}")
            engine.tasks.add(f"{topic} step {n}", objective=f"Wrote the {topic} step t{n}")


def done(engine: foveate.Engine, key: str, result: str = "", *, files_to_read: Any = (), **values: Any) -> Task:
    """A task that is completed."""
    engine.tasks.add(key.title(), key=key, **values)
    if files_to_read:
        engine.edit(engine.tasks.get(key).id, data={"files_to_read": files_to_read})
    return engine.tasks.complete(key, result or f"The {key} is there")


def taught(engine: foveate.Engine, by: str, kind: str, text: str, **values: Any) -> str:
    """The id of something that was learned from a task."""
    id = add_record(engine, kind, text, **values).record.id
    engine.link(id, "learned_from", engine.tasks.get(by).id)
    return id


def test_each_call_is_computed_anew_from_state(engine: foveate.Engine) -> None:
    """000-01, 000-02, 000-03"""
    engine.add("gotcha", "The login form loses its token")
    engine.add("gotcha", "The export job leaks memory")
    engine.context("Fix the export job")
    assert "export" not in engine.context("Fix the login form").text
    engine.add("gotcha", "The login page caches passwords")
    assert "caches passwords" in engine.context("Fix the login form").text


@pytest.mark.slow
def test_never_the_whole_map_and_never_all_patterns(engine: foveate.Engine) -> None:
    """000-06, 000-07, 000-08, 000-09, 000-11, 000-99, 000-102"""
    knowledge(engine)
    context = engine.context("Change the billing module and its handlers")
    assert len(shown(context, "code_references")) == 10
    assert len(shown(context, "patterns")) == 5
    for other in ("login", "search", "upload", "export"):
        assert f"The {other} module" not in content(context, "patterns")
    assert content(context, "code_references").count("`src/billing/") == 10


def test_keywords_are_terms_in_lower_case_without_stop_words(engine: foveate.Engine) -> None:
    """000-14, 000-15, 000-16"""
    signals = engine.context("Add the JWT Token to the Login Endpoint").signals
    assert signals.keywords == ("add", "jwt", "token", "login", "endpoint")


def test_files_mentioned_are_paths_of_the_text(engine: foveate.Engine) -> None:
    """000-23"""
    assert engine.context("Change src/auth/login.py and README.md").signals.paths == ("src/auth/login.py", "README.md")


def test_each_record_stands_once(engine: foveate.Engine) -> None:
    """000-28"""
    id = engine.add("pattern", "Login handlers log in one place", tags=["login", "auth"]).record.id
    context = engine.context("login auth handlers")
    assert [item.id for item in context.items] == [id]


def test_lines_of_patterns_gotchas_and_decisions(engine: foveate.Engine) -> None:
    """000-29, 000-30, 000-31, 000-56, 000-57, 000-58, 000-69, 000-71, 000-73"""
    engine.add("pattern", "Login handlers log in one place", data={"location": "src/log.py"})
    engine.add("gotcha", "Login tokens expire at midnight", data={"severity": "high"})
    engine.add("gotcha", "Login pages are cached")
    engine.add("decision", "Login uses JWT", data={"rationale": "no shared cache"})
    context = engine.context("login")
    assert content(context, "patterns") == "## Patterns to Follow\n- **Login handlers log in one place** (see: src/log.py)\n"
    assert content(context, "warnings").splitlines()[0] == "## Warnings"
    assert "- ⚠️ **high**: Login tokens expire at midnight\n" in content(context, "warnings")
    assert "- ⚠️ **medium**: Login pages are cached\n" in content(context, "warnings")
    assert content(context, "decisions").endswith("- Login uses JWT — no shared cache\n")


def test_a_pattern_without_a_location_points_nowhere(engine: foveate.Engine) -> None:
    """000-69"""
    engine.add("pattern", "Login handlers log in one place")
    assert content(engine.context("login"), "patterns").endswith("- **Login handlers log in one place**\n")


def test_nothing_is_said_of_decisions_where_there_are_none(engine: foveate.Engine) -> None:
    """000-73"""
    assert content(engine.context("login"), "decisions") == ""


def test_lists_are_ordered_by_relevance(engine: foveate.Engine) -> None:
    """000-33"""
    engine.add("gotcha", "Search pages are slow on Mondays")
    engine.add("gotcha", "Login tokens can expire on Mondays")
    engine.add("gotcha", "Login pages are slow on Mondays")
    items = [item for item in engine.context("Why do login tokens expire?").items if item.section == "warnings"]
    assert items[0].id == "gotcha_2"
    items = [item for item in engine.context("Are login pages slow?").items if item.section == "warnings"]
    assert [item.id for item in items] == ["gotcha_3", "gotcha_1", "gotcha_2"]
    relevance = [item.candidate.features["relevance"] for item in items]
    assert relevance == sorted(relevance, reverse=True)
    assert len(set(relevance)) == 3


def test_of_two_records_that_are_as_relevant_the_shorter_comes_first(engine: foveate.Engine) -> None:
    """000-33 (D22)"""
    engine.add("gotcha", "The login page is slow " + "whenever somebody has left the export of the whole catalogue running")
    engine.add("gotcha", "The login page is slow on Mondays")
    assert shown(engine.context("login page slow"), "warnings") == ["gotcha_2", "gotcha_1"]


LIMITS = [("easy", 3, 2, 5, 2), ("normal", 5, 3, 10, 4), ("complex", 10, 5, 20, 8), (None, 5, 3, 10, 4)]


def upload(engine: foveate.Engine, **values: Any) -> None:
    """A task with more of everything than any complexity allows."""
    knowledge(engine)
    before = [done(engine, f"before{n}").id for n in range(10)]
    engine.tasks.add("Upload", key="upload", objective="Change the upload module", depends_on=before, **values)


def counts(context: Context) -> list[int]:
    return [len(shown(context, name)) for name in ("patterns", "warnings", "code_references", "prior_work")]


@pytest.mark.slow
@pytest.mark.parametrize(("complexity", "patterns", "gotchas", "references", "tasks"), LIMITS)
def test_one_call_computes_and_limits_by_complexity(
    plain: foveate.Engine, complexity: str | None, patterns: int, gotchas: int, references: int, tasks: int
) -> None:
    """000-34, 000-35, 000-36, 000-54, 000-80, 000-81, 000-82, 000-83, 000-89"""
    upload(plain)
    context = plain.context(task="upload", complexity=complexity, budget=4000)
    assert counts(context) == [patterns, gotchas, references, tasks]
    assert len(shown(context, "decisions")) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("complexity", "patterns", "gotchas", "references", "tasks"), LIMITS[:3])
def test_a_task_says_itself_how_complex_it_is(
    plain: foveate.Engine, complexity: str, patterns: int, gotchas: int, references: int, tasks: int
) -> None:
    """000-80, 000-81, 000-82, 000-89"""
    upload(plain, complexity=complexity)
    context = plain.context(task="upload", budget=4000)
    assert counts(context) == [patterns, gotchas, references, tasks]
    signals = to_json(plain.receipts.get(context))["signals"]
    assert (signals["complexity"], signals["because"]) == (complexity, "the task says so")


@pytest.mark.parametrize(
    ("values", "complexity", "because"),
    [
        ({"objective": "Fix a typo in the readme"}, "easy", "estimated: 'readme' (-1)"),
        ({"objective": "Add a page"}, "normal", "estimated: nothing indicates more or less"),
        ({"objective": "Add a page", "steps": ["a", "b", "c", "d"]}, "normal", "estimated: 4 steps (+1)"),
        (
            {"objective": "A migration of the users", "files": [f"src/{n}.py" for n in range(6)]},
            "complex",
            "estimated: 6 files (+2), 'migration' (+1)",
        ),
    ],
)
def test_the_receipt_says_why_a_task_is_taken_to_be_so_complex(
    plain: foveate.Engine, values: dict[str, Any], complexity: str, because: str
) -> None:
    """000-89"""
    plain.tasks.add("Work", key="work", **values)
    document = to_json(plain.receipts.get(plain.context(task="work")))
    assert (document["signals"]["complexity"], document["signals"]["because"]) == (complexity, because)
    patterns = next(slot for slot in document["profile"]["slots"] if slot["name"] == "patterns")
    assert patterns["max_items"] == {"easy": 3, "normal": 5, "complex": 10}[complexity]


@pytest.mark.slow
def test_the_requests_complexity_goes_before_the_tasks(plain: foveate.Engine) -> None:
    """000-89"""
    knowledge(plain)
    plain.tasks.add("Upload", key="upload", objective="Change the upload module", complexity="complex")
    assert len(shown(plain.context(task="upload", complexity="easy"), "patterns")) == 3


def test_code_references_give_location_component_and_notes(engine: foveate.Engine) -> None:
    """000-63, 000-76"""
    engine.add("component", "Routes and guards", data={"component": "login router", "location": "src/api/router.py:1"})
    assert content(engine.context("login router"), "code_references") == (
        "## Code References\n"
        "| Location | Component | Notes |\n"
        "|----------|-----------|-------|\n"
        "| `src/api/router.py:1` | login router | Routes and guards |\n"
    )


def test_what_is_empty_says_so(engine: foveate.Engine) -> None:
    """000-70, 000-72, 000-77"""
    assert engine.context("login", profile="task").text == (
        "## Context (Computed)\n\n### Patterns to Follow\nNo specific patterns identified for this task.\n\n"
        "### Warnings\nNo known gotchas for this task area.\n\n"
        "### Code References\nExplore the codebase as needed. No specific references pre-identified.\n"
    )


def test_the_signals_and_every_choice_can_be_seen(engine: foveate.Engine) -> None:
    """000-64, 000-100"""
    engine.add("gotcha", "Login tokens expire at midnight")
    context = engine.context("login tokens in src/login.py")
    document = to_json(engine.receipts.get(context))
    assert document["signals"]["keywords"][0] == "login"
    assert document["signals"]["paths"] == ["src/login.py"]
    assert str(engine.why("gotcha_1", context)).startswith("kept in 'warnings'")


@pytest.mark.slow
def test_a_context_stays_small_while_the_project_grows(engine: foveate.Engine) -> None:
    """000-98, 000-101"""
    engine.add("gotcha", "The billing module rounds to cents")
    small = engine.context("Change the billing module")
    knowledge(engine)
    large = engine.context("Change the billing module")
    assert large.tokens <= 2000
    assert large.tokens < 20 * small.tokens


def test_the_task_world_reads_as_the_document_asks() -> None:
    """000-69, 000-71, 000-80"""
    with TASK.open() as engine:
        context = TASK.context(engine)
    headings = [line for line in context.text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Identity",
        "## Active Constraints",
        "## Relevant Past Decisions",
        "## Warnings",
        "## Patterns to Follow",
        "## Related Tasks",
        "## Code References",
    ]


# --- phase 1: the signals of a task --------------------------------------------------------------------------------


def test_the_signals_of_a_task_are_those_of_its_objective_description_and_criteria(plain: foveate.Engine) -> None:
    """000-12, 000-13, 000-24"""
    plain.tasks.add(
        "Unsaid",
        key="login",
        objective="Add a Login button",
        acceptance_criteria=["Shown in src/ui/bar.tsx", "Covered by a test"],
        description="Customers reach the billing pages through it",
        type="feature",
    )
    signals = plain.context(task="login").signals
    assert signals.keywords[:3] == ("add", "login", "button")
    assert {"billing", "shown", "covered", "test"} < set(signals.keywords)
    assert "unsaid" not in signals.keywords
    assert signals.domains == ("auth", "ui", "testing")
    assert signals.paths == ("src/ui/bar.tsx",)
    assert signals.task_type == "feature"


def test_a_task_without_a_type_has_none(plain: foveate.Engine) -> None:
    """000-24"""
    plain.tasks.add("Login", key="login")
    assert plain.context(task="login").computed()["_computed"]["signals"]["task_types"] == []


def test_a_question_about_a_task_counts_beside_it(plain: foveate.Engine) -> None:
    """000-12"""
    plain.tasks.add("Login", key="login", objective="Add the login page")
    signals = plain.context("Which cookie?", task="login").signals
    assert signals.keywords == ("cookie", "add", "login", "page")
    assert signals.terms["cooki"] > signals.terms["login"]


@pytest.mark.parametrize("term", ["snake_case", "camelCase", "a.b.c", "--dry-run", "HTTP 404", "PascalCase", "MAX_SIZE"])
def test_technical_terms_are_keywords_whole(plain: foveate.Engine, term: str) -> None:
    """000-14"""
    plain.tasks.add("Work", key="work", objective=f"Handle {term} everywhere")
    assert term.lower() in plain.context(task="work").signals.keywords


@pytest.mark.parametrize(("domain", "trigger"), [(name, word) for name, words in DOMAINS.items() for word in words])
def test_one_trigger_sets_its_domain(engine: foveate.Engine, domain: str, trigger: str) -> None:
    """000-17, 000-18, 000-19, 000-20, 000-21, 000-22"""
    assert engine.context(f"Change the {trigger} now").signals.domains == (domain,)


def test_the_triggers_are_those_of_the_document() -> None:
    """000-17, 000-18, 000-19, 000-20, 000-21"""
    assert {name: set(words) for name, words in DOMAINS.items()} == {
        "api": {"endpoint", "rest", "graphql", "route", "request"},
        "auth": {"login", "token", "jwt", "session", "password"},
        "database": {"query", "schema", "migration", "model", "record"},
        "ui": {"component", "button", "form", "page", "style"},
        "testing": {"test", "spec", "mock", "assert", "coverage"},
    }


@pytest.mark.parametrize(
    ("query", "domains"),
    [
        ("Rotate tokens", ("auth",)),
        ("Slow QUERIES", ("database",)),
        ("Everything is mocked", ("testing",)),
        ("Restyled buttons", ("ui",)),
        ("The latest restaurant", ()),
        ("Retry the job", ()),
    ],
)
def test_a_trigger_counts_in_any_form_and_never_as_a_part(
    engine: foveate.Engine, query: str, domains: tuple[str, ...]
) -> None:
    """000-22"""
    assert engine.context(query).signals.domains == domains


def test_a_projects_own_domains_join_the_shipped_ones(tmp_path: Path) -> None:
    """000-22"""
    (tmp_path / ".foveate").mkdir()
    settings = '[domains]\nbilling = ["invoice", "tax rate"]\nauth = ["badge"]\nui = []\n'
    (tmp_path / ".foveate" / "config.toml").write_text(settings, "utf-8")
    with foveate.open(tmp_path) as engine:
        assert engine.context("Print invoices").signals.domains == ("billing",)
        assert engine.context("A new tax rate").signals.domains == ("billing",)
        assert engine.context("A new tax").signals.domains == ()
        assert engine.context("Lost badges").signals.domains == ("auth",)
        assert engine.context("Lost passwords").signals.domains == ("auth",)
        assert engine.context("A new button").signals.domains == ()


def test_a_domain_that_is_no_list_of_words_is_refused(tmp_path: Path) -> None:
    """000-22"""
    (tmp_path / ".foveate").mkdir()
    (tmp_path / ".foveate" / "config.toml").write_text('[domains]\nbilling = "invoice"\n', "utf-8")
    with pytest.raises(InputError, match=r"domains\.billing must be a list of words"):
        foveate.open(tmp_path)


# --- phase 2: the knowledge queries --------------------------------------------------------------------------------


def brought(engine: foveate.Engine, context: Context, slot: str, source: str) -> int:
    """How many candidates a source brought for a slot."""
    entries = engine.receipts.get(context).candidates
    return sum(entry.slot == slot and entry.source == source for entry in entries)


def test_tags_that_equal_keywords_find_20_at_most(engine: foveate.Engine) -> None:
    """000-26"""
    for n in range(30):
        engine.add("gotcha", f"Nobody expects thing{n}", tags=["webhook"])
    context = engine.context("Add a webhook")
    assert brought(engine, context, "warnings", "search") == 20
    assert len(shown(context, "warnings")) == 3
    fewer = engine.context("Add a webhook", overrides={"slots": {"warnings": {"max_candidates": 2}}})
    assert brought(engine, fewer, "warnings", "search") == 2


def test_tags_that_equal_domains_find_10_at_most(engine: foveate.Engine) -> None:
    """000-27"""
    for n in range(30):
        engine.add("gotcha", f"Nobody expects thing{n}", tags=["auth"])
    context = engine.context("Rotate the password")
    assert brought(engine, context, "warnings", "search") == 0
    assert brought(engine, context, "warnings", "domains") == 10
    assert len(shown(context, "warnings")) == 3
    fewer = engine.context("Rotate the password", overrides={"slots": {"warnings": {"extra_sources": {"domains": 2}}}})
    assert brought(engine, fewer, "warnings", "domains") == 2


def test_a_record_that_both_queries_find_stands_once(engine: foveate.Engine) -> None:
    """000-28"""
    id = engine.add("gotcha", "Passwords are logged", tags=["auth"]).record.id
    context = engine.context("Rotate the password")
    entries = [entry for entry in engine.receipts.get(context).candidates if entry.id == id]
    assert len(entries) == 1
    assert entries[0].features["relevance"] > 0
    assert entries[0].features["domain"] > 0


def test_a_task_that_matches_is_one_line_and_five_at_most(plain: foveate.Engine) -> None:
    """000-32, 000-37"""
    for n in range(9):
        plain.tasks.add(f"Upload step {n}", objective=f"Write upload step {n}\nAnd explain it at length")
    plain.tasks.add("Upload", key="upload", objective="Change the upload step")
    context = plain.context(task="upload")
    assert len(shown(context, "related_tasks")) == 5
    assert context.computed()["related_tasks"] == shown(context, "related_tasks")
    assert plain.tasks.get("upload").id not in shown(context, "related_tasks")
    lines = content(context, "related_tasks").splitlines()
    assert lines[0] == "### Related Tasks"
    assert all(line.startswith("- Upload step ") for line in lines[1:])
    assert len(lines) == 6


# --- phase 3: what dependencies hand on ----------------------------------------------------------------------------


def test_only_completed_dependencies_hand_on(plain: foveate.Engine) -> None:
    """000-10, 000-38, 000-39"""
    done(plain, "parser", "It parses")
    plain.tasks.add("Lexer", key="lexer")
    plain.tasks.edit("lexer", status="active")
    done(plain, "stranger", "It is strange")
    taught(plain, "parser", "gotcha", "Nesting is deep")
    taught(plain, "lexer", "gotcha", "Bytes are wide")
    taught(plain, "stranger", "gotcha", "Bolts are loose")
    plain.tasks.add("Report", key="report", objective="Print it", depends_on=["parser", "lexer"])
    text = plain.context(task="report").text
    assert "#### Parser\nIt parses\n" in text
    assert "Nesting is deep" in text
    assert not [word for word in ("Lexer", "Bytes", "Stranger", "strange", "Bolts") if word in text]
    plain.tasks.complete("lexer", "It splits")
    assert "Bytes are wide (from Lexer)" in plain.context(task="report").text


def test_a_dependency_is_a_task_or_a_file_to_read(plain: foveate.Engine) -> None:
    """000-38"""
    parser = done(plain, "parser")
    report = plain.tasks.add("Report", key="report", depends_on=["parser", "docs/print.md"])
    assert report.depends_on == (parser.id,)
    assert "**Read first:**\n- `docs/print.md`\n" in content(plain.context(task="report"), "task")
    with pytest.raises(NotFound, match="No task 'nothing' to depend on, and it does not look like a path"):
        plain.tasks.add("Other", depends_on=["nothing"])
    gotcha = plain.add("gotcha", "Nesting is deep").record.id
    with pytest.raises(InputError, match="is a gotcha; a task depends on tasks and on files"):
        plain.tasks.add("Other", depends_on=[gotcha])


def test_prior_work_is_the_dependencys_name_its_outcome_and_files_to_read(plain: foveate.Engine) -> None:
    """000-41, 000-42, 000-43, 000-59, 000-74, 000-75"""
    files = [{"file": "src/parse.py", "reason": "the grammar"}, {"file": "README.md"}]
    parser = done(plain, "parser", "It parses", objective="Write a parser", files_to_read=files)
    plain.tasks.add("Report", key="report", objective="Print it", depends_on=["parser"])
    context = plain.context(task="report")
    assert shown(context, "prior_work") == [parser.id]
    assert content(context, "prior_work") == (
        "### Prior Work\n#### Parser\nIt parses\n\n**Files to read:**\n- `src/parse.py`: the grammar\n- `README.md`\n"
    )
    assert context.computed()["prior_work"] == [{"task": "Parser", "summary": "It parses", "files_to_read": files}]


def handing_on(engine: foveate.Engine) -> None:
    """A task whose dependency taught something of every sort."""
    done(engine, "parser")
    taught(engine, "parser", "pattern", "Return a tree", location="src/tree.py")
    for severity in ("low", "medium", "critical", "high"):
        taught(engine, "parser", "gotcha", f"Bites {severity[0]}{severity[-1]}", severity=severity)
    taught(engine, "parser", "gotcha", "Bites anyway")
    taught(engine, "parser", "decision", "Recursive descent", rationale="plain")
    taught(engine, "parser", "question", "Tabs?", context="Both occur", recommendation="Spaces", blocking=True)
    taught(engine, "parser", "question", "Colours?", blocking=False)
    taught(engine, "parser", "question", "Sounds?")
    engine.tasks.add("Report", key="report", objective="Print it", depends_on=["parser"], complexity="easy")


def test_dependencies_hand_on_patterns_and_decisions(plain: foveate.Engine) -> None:
    """000-44, 000-60"""
    handing_on(plain)
    context = plain.context(task="report")
    assert content(context, "patterns").endswith("- **Return a tree** (see: src/tree.py) (from Parser)\n")
    assert content(context, "decisions").endswith("- Recursive descent — plain (from Parser)\n")
    entry = plain.why(shown(context, "patterns")[0], context)
    assert (entry.candidate.features["inherited"], entry.score_parts["inherited"]) == (1.0, 0.4)


def test_dependencies_hand_on_gotchas_above_low_the_worst_first(plain: foveate.Engine) -> None:
    """000-45, 000-61"""
    handing_on(plain)
    assert content(plain.context(task="report"), "warnings") == (
        "### Warnings\n"
        "- ⚠️ **critical**: Bites cl (from Parser)\n"
        "- ⚠️ **high**: Bites hh (from Parser)\n"
        "- ⚠️ **medium**: Bites mm (from Parser)\n"
        "- ⚠️ **medium**: Bites anyway (from Parser)\n"
    )


def test_dependencies_hand_on_blocking_questions_only(plain: foveate.Engine) -> None:
    """000-46, 000-62, 000-78, 000-79"""
    handing_on(plain)
    assert content(plain.context(task="report"), "questions") == (
        "### Open Questions (Blocking)\n"
        "⚠️ The following questions need resolution:\n"
        "- **Tabs?** (from Parser)\n"
        "  - Context: Both occur\n"
        "  - Recommendation: Spaces\n"
    )


def test_a_question_that_was_answered_blocks_no_more(plain: foveate.Engine) -> None:
    """000-46, 000-78"""
    done(plain, "parser")
    question = taught(plain, "parser", "question", "Tabs?", blocking=True)
    plain.tasks.add("Report", key="report", objective="Print it", depends_on=["parser"])
    plain.inbox.answer(question, "Spaces.")
    context = plain.context(task="report")
    assert content(context, "questions") == ""
    assert "- Tabs? Spaces. (from Parser)\n" in content(context, "decisions")


def test_what_is_handed_on_is_not_lost_to_max_items_and_takes_no_ones_place(plain: foveate.Engine) -> None:
    """000-60, 000-61"""
    handing_on(plain)
    for n in range(9):
        plain.add("gotcha", f"Print jobs stop at thing{n}", data={"severity": "critical"})
    found = shown(plain.context(task="report", budget=4000), "warnings")
    assert {"gotcha_2", "gotcha_3", "gotcha_4", "gotcha_5"} < set(found)
    assert len(found) == 4 + 2


def test_what_is_handed_on_goes_before_what_merely_resembles(plain: foveate.Engine) -> None:
    """000-60, 000-61"""
    handing_on(plain)
    plain.add("gotcha", "Ink is dear to whoever wants to print a poster on a Sunday", data={"severity": "critical"})
    assert shown(plain.context(task="report"), "warnings")[-1] == "gotcha_6"


def test_what_dependencies_stood_on_is_a_line_each_and_no_further(plain: foveate.Engine) -> None:
    """000-10"""
    done(plain, "bytes", "Bytes are read")
    done(plain, "lexer", "It splits", depends_on=["bytes"], files_to_read=[{"file": "src/lex.py"}])
    done(plain, "parser", "It parses", depends_on=["lexer"])
    taught(plain, "lexer", "gotcha", "Tabs are wide")
    plain.tasks.add("Report", key="report", objective="Print a summary", depends_on=["parser"])
    context = plain.context(task="report")
    assert content(context, "earlier_work") == "### Earlier Work\n- Lexer: It splits\n"
    assert "Bytes" not in context.text
    assert "Tabs are wide" not in context.text


def test_a_dependency_that_is_also_behind_another_stands_once(plain: foveate.Engine) -> None:
    """000-10"""
    done(plain, "lexer")
    done(plain, "parser", depends_on=["lexer"])
    plain.tasks.add("Report", key="report", objective="Print it", depends_on=["parser", "lexer"])
    context = plain.context(task="report")
    assert len(shown(context, "prior_work")) == 2
    assert shown(context, "earlier_work") == []


def test_never_the_whole_journal_and_never_every_summary(plain: foveate.Engine) -> None:
    """000-04, 000-05, 000-10"""
    for n in range(40):
        done(plain, f"chore{n}", f"Chore {n} of printing is done")
    plain.tasks.add("Report", key="report", objective="Do the printing", depends_on=["chore7"])
    context = plain.context(task="report")
    assert content(context, "prior_work") == "### Prior Work\n#### Chore7\nChore 7 of printing is done\n"
    assert len([item for item in context.items if item.kind == "task"]) <= 1 + 1 + 5


# --- phase 4: the context map --------------------------------------------------------------------------------------


def entry(engine: foveate.Engine, component: str, location: str, notes: str) -> str:
    """The id of an entry of the map, in the form in which a handoff leaves it."""
    paths = [location.partition(":")[0]]
    values = {"component": component, "location": location, "subject": component, "paths": paths}
    return add_record(engine, "component", notes or component, **values).record.id


# What is asked; the entry's component, location and notes; how often each thing that gives points is the case.
POINTS = [
    ("Show the login token", ("Login page", "web/login.ts", "One Auth flow"), (1, 1, 1, 0), 4),
    ("Show the login token", ("TokenLogin", "lib/token_login.rb", "Keeps them"), (2, 2, 0, 0), 6),
    ("Show the login token", ("Router", "web/app.ts", "AUTH guards"), (0, 0, 1, 0), 1),
    ("Show the login token", ("Logins", "lib/all.rb", ""), (1, 0, 0, 0), 2),
    ("Route a login", ("Gate", "lib/gate.rb", "The auth of our API"), (0, 0, 2, 0), 2),
    ("See web/app.ts", ("Router", "web/app.ts:10-20", "Paths"), (0, 3, 0, 1), 6),  # web, app, app.ts
    ("See web/app.ts and lib/gate.rb", ("Both", "web/app.ts, lib/gate.rb", "Paths"), (0, 5, 0, 2), 11),  # and gate, gate.rb
    ("See app.ts", ("Router", "web/APP.ts", "Paths"), (0, 2, 0, 0), 2),  # a file's name keeps its case
]


@pytest.mark.parametrize(("query", "known", "matches", "points"), POINTS)
def test_an_entry_of_the_map_gets_the_documents_points(
    engine: foveate.Engine, query: str, known: tuple[str, str, str], matches: tuple[int, ...], points: int
) -> None:
    """000-47, 000-48, 000-49, 000-50, 000-51, 000-53"""
    id = entry(engine, *known)
    context = engine.context(query)
    why = engine.why(id, context)
    names = ("map_component", "map_location", "map_domain", "map_file")
    assert tuple(round(why.candidate.features[name] * 10) for name in names) == matches
    assert round(sum(why.score_parts[name] for name in names) * 10, 6) == points
    found = context.computed()["code_references"]
    assert [(each["component"], each["file"], each["notes"]) for each in found] == [known]


def test_the_map_is_ordered_by_points_and_nothing_without_points_is_shown(engine: foveate.Engine) -> None:
    """000-47, 000-52, 000-54"""
    entry(engine, "Mailer", "lib/mail.rb", "Sends mail")
    gate = entry(engine, "Gate", "lib/gate.rb", "Guards of auth")
    view = entry(engine, "login view", "web/login.ts", "The form of it")
    entry(engine, "Notes", "lib/n.rb", "Login and token are in the notes only, which give no points")
    best = entry(engine, "login token view", "web/view.ts", "Shows it")
    assert shown(engine.context("Show the login token"), "code_references") == [best, view, gate]


def test_a_map_of_any_size_gives_its_ten_best(engine: foveate.Engine) -> None:
    """000-54"""
    for n in range(60):
        entry(engine, f"login {n}", f"lib/{n}.rb", f"Part {n}")
    best = {entry(engine, f"login token {n}", f"lib/best{n}.rb", f"Best {n}") for n in range(4)}
    found = shown(engine.context("Show the login token"), "code_references")
    assert len(found) == 10
    assert set(found[:4]) == best


def test_an_entry_that_was_added_by_hand_is_found_by_its_component(engine: foveate.Engine) -> None:
    """000-48"""
    engine.add("component", "Charges cards", data={"component": "login", "location": "lib/a.rb"})
    assert shown(engine.context("login"), "code_references") == ["component_1"]


def test_two_files_with_the_same_notes_are_two_entries(engine: foveate.Engine) -> None:
    """000-53"""
    both = [entry(engine, "login", "lib/login.rb", "Login tests"), entry(engine, "logins", "lib/logins.rb", "Login tests")]
    assert sorted(shown(engine.context("login"), "code_references")) == both


def test_an_entry_that_was_added_by_hand_can_be_stale(tmp_path: Path) -> None:
    """000-54"""
    with foveate.open(tmp_path, profile="coding") as engine:
        engine.add("component", "The login", data={"component": "login", "location": "lib/login.rb:3"})
        assert "(stale: the file is gone)" in engine.context("login").text


def test_a_domain_within_a_word_of_the_notes_counts(engine: foveate.Engine) -> None:
    """000-50"""
    gate = entry(engine, "Gate", "lib/gate.rb", "Authentication for every call")
    assert shown(engine.context("Rotate the password"), "code_references") == [gate]


def test_an_entry_whose_file_is_gone_is_marked_and_comes_last(tmp_path: Path) -> None:
    """000-53, 000-54"""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "here.rb").write_text("x\n", "utf-8")
    with testing.engine(tmp_path, clock=clock, ids=counting_ids(), profile="coding") as engine:
        gone = entry(engine, "login token", "lib/gone_login.rb:3", "The best of all")
        here = entry(engine, "login", "lib/here.rb:1-9", "Still there")
        context = engine.context("Show the login token")
        assert content(context, "code_references").splitlines()[-2:] == [
            "| `lib/here.rb:1-9` | login | Still there |",
            "| `lib/gone_login.rb:3` | login token | The best of all (stale: the file is gone) |",
        ]
        assert [found.get("stale", False) for found in context.computed()["code_references"]] == [False, True]
        assert shown(context, "code_references") == [here, gone]
        one = {"slots": {"code_references": {"max_items": 1}}}
        assert shown(engine.context("login token", overrides=one), "code_references") == [here]


# --- phase 5: the computed result ----------------------------------------------------------------------------------


def test_the_steps_run_in_the_documents_order() -> None:
    """000-55"""
    seen = []

    class Late(foveate.Source):
        name = "late"

        def find(self, asks: Any, around: Any) -> list[Any]:
            seen.append((around.signals.keywords, around.request.task.data["name"]))
            return []

    with open_engine(sources=[Late()]) as engine:
        handing_on(engine)
        slots = {"slots": {"late": {"source": "late", "share": 1}}}
        context = engine.context(task="report", overrides=slots)
        asked = [report.source for report in engine.receipts.get(context).sources]
    assert seen == [(("print",), "Report")]
    steps = ("search", "domains", "dependencies", "context_map")
    assert [name for name in asked if name in steps] == list(steps)


def test_the_computed_result_has_every_part_of_the_document() -> None:
    """000-56 to 000-67"""
    with DEPENDENT.open() as engine:
        computed = DEPENDENT.context(engine).computed()
    relevance = [entry.pop("relevance") for part in computed.values() if isinstance(part, list) for entry in part
                 if isinstance(entry, dict) and "relevance" in entry]  # fmt: skip
    assert all(0 <= value <= 1 for value in relevance)
    assert len(relevance) == 8
    figures = computed.pop("_computed")
    assert computed == {
        "patterns_to_follow": [{"pattern": "Every endpoint declares its models", "location": "src/api/models.py"}],
        "warnings": [
            {"issue": "JWT clocks differ by up to a minute between hosts", "severity": "high"},
            {"issue": "Cookies are dropped by the proxy", "severity": "medium"},
        ],
        "relevant_decisions": [
            {
                "decision": "Postgres holds the signed-in, Redis does not",
                "rationale": "one backup",
                "from": "Session store",
            },
            {"decision": "Tokens are JWT", "rationale": "no shared cache"},
        ],
        "related_tasks": ["task_6"],
        "prior_work": [
            {
                "task": "Session store",
                "summary": "Who is signed in is kept in Postgres.",
                "files_to_read": [{"file": "src/store.py", "reason": "`open_store` | `close_store`"}],
            },
            {
                "task": "Registration",
                "summary": "People can register; passwords are hashed with argon2.",
                "files_to_read": [
                    {"file": "src/users/register.py", "reason": "how the handler answers"},
                    {"file": "src/users/hash.py"},
                ],
            },
        ],
        "inherited_patterns": [
            {"pattern": "Handlers return a dataclass", "location": "src/users/register.py", "from": "Registration"},
            {"pattern": "Open the store in a `with` block", "location": None, "from": "Session store"},
        ],
        "inherited_warnings": [
            {"issue": "Two stores in one process\ndeadlock", "severity": "critical", "from": "Session store"}
        ],
        "blocking_questions": [
            {
                "question": "How long may somebody stay signed in?",
                "context": "Legal asks for\na limit",
                "recommendation": "30 days",
                "from": "Session store",
            }
        ],
        "code_references": [
            {"file": "src/api/login.py:1-20", "component": "login", "notes": "The endpoint itself"},
            {
                "file": "src/api/router.py:1",
                "component": "login | logout `router`",
                "notes": "Routes | guards,\nand `before` hooks for auth",
            },
        ],
    }
    assert figures["dependency_count"] == 2
    assert figures["context_map_filtered"] == 2
    assert figures["signals"]["domains"] == ["api", "auth", "testing"]
    assert figures["signals"]["files_mentioned"] == ["src/api/login.py"]
    assert figures["signals"]["task_types"] == ["feature"]
    assert "login" in figures["signals"]["keywords"]


def test_the_nodes_matched_are_patterns_gotchas_and_decisions(plain: foveate.Engine) -> None:
    """000-65"""
    plain.tasks.add("Login", key="login", objective="Add the login page")
    plain.add("pattern", "Login pages are forms")
    plain.add("gotcha", "The login page is cached")
    plain.add("gotcha", "The login page is slow in winter")
    plain.add("decision", "The login page is static")
    plain.add("fact", "The login page is blue")
    assert plain.context(task="login").computed()["_computed"]["knowledge_nodes_matched"] == 4


def test_a_task_about_which_nothing_is_known_has_empty_parts() -> None:
    """000-56 to 000-67"""
    with ALONE.open() as engine:
        computed = ALONE.context(engine).computed()
    figures = computed.pop("_computed")
    assert all(part == [] for part in computed.values())
    assert len(computed) == 9
    assert (figures["knowledge_nodes_matched"], figures["dependency_count"], figures["context_map_filtered"]) == (0, 0, 0)


# --- the format ----------------------------------------------------------------------------------------------------


def test_the_section_is_titled_and_its_parts_are_one_level_below() -> None:
    """000-68"""
    with DEPENDENT.open() as engine:
        text = DEPENDENT.context(engine).messages()[-1]["content"]
    assert [line for line in text.splitlines() if line.startswith(("## ", "### "))] == [
        "## Task",
        "## Context (Computed)",
        "### Patterns to Follow",
        "### Warnings",
        "### Relevant Decisions",
        "### Prior Work",
        "### Earlier Work",
        "### Related Tasks",
        "### Code References",
        "### Open Questions (Blocking)",
    ]


def test_a_task_about_which_nothing_is_known_reads_as_the_document_says() -> None:
    """000-68, 000-70, 000-72, 000-73, 000-77, 000-78"""
    with ALONE.open() as engine:
        text = ALONE.context(engine).text
    assert text.partition("## Context (Computed)\n\n")[2] == (
        "### Patterns to Follow\nNo specific patterns identified for this task.\n\n"
        "### Warnings\nNo known gotchas for this task area.\n\n"
        "### Code References\nExplore the codebase as needed. No specific references pre-identified.\n"
    )


def test_files_to_read_are_not_called_created() -> None:
    """000-75"""
    with DEPENDENT.open() as engine:
        text = DEPENDENT.context(engine).text
    assert "**Files to read:**\n- `src/users/register.py`: how the handler answers\n- `src/users/hash.py`\n" in text
    assert "Files Created" not in text


def test_cells_of_the_table_stay_cells() -> None:
    """000-76"""
    with DEPENDENT.open() as engine:
        lines = content(DEPENDENT.context(engine), "code_references").splitlines()
    assert lines[1:3] == ["| Location | Component | Notes |", "|----------|-----------|-------|"]
    assert (
        lines[4] == r"| `src/api/router.py:1` | login \| logout `router` | Routes \| guards, and `before` hooks for auth |"
    )


# --- after the work ------------------------------------------------------------------------------------------------


def test_notes_are_the_files_purpose_else_its_description(plain: foveate.Engine) -> None:
    """000-96, 000-97"""
    plain.tasks.add("Parser", key="parser")
    created = [
        {"path": "src/lexer.py", "lines": "1-9", "purpose": "Splits"},
        {"path": "src/parser.py", "description": "Joins"},
    ]
    plain.tasks.handoff("parser", {"summary": "Done", "files_created": created})
    found = plain.context("lexer parser", profile="coding").computed()["code_references"]
    assert sorted((each["file"], each["component"], each["notes"]) for each in found) == [
        ("src/lexer.py:1-9", "lexer", "Splits"),
        ("src/parser.py", "parser", "Joins"),
    ]


def test_a_files_purpose_goes_before_its_description(plain: foveate.Engine) -> None:
    """000-97"""
    plain.tasks.add("Lexer", key="lexer")
    plain.tasks.handoff("lexer", {"files_created": [{"path": "src/lexer.py", "purpose": "Splits", "description": "Unused"}]})
    assert plain.context("lexer", profile="coding").computed()["code_references"][0]["notes"] == "Splits"


# --- debug ---------------------------------------------------------------------------------------------------------


def test_a_receipt_can_be_rendered_as_the_documents_debug_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """000-84, 000-85, 000-86, 000-87, 000-88"""
    monkeypatch.setenv("FOVEATE_DEBUG_CONTEXT", "true")
    with DEPENDENT.open() as engine:
        text = engine.receipts.get(DEPENDENT.context(engine)).debug()
    parts = dict(part.split("\n", 1) for part in text.split("### ")[1:])
    assert text.startswith("## Context Debug\n")
    signals = parts["Signals Extracted"]
    assert "- Keywords: add, login, endpoint, issues, jwt, tokens, " in signals
    assert "- Domains: api, auth, testing\n- Files Mentioned: src/api/login.py\n" in signals
    assert "- Task Type: feature\n- Complexity: normal (estimated: nothing indicates more or less)\n" in signals
    assert parts["Knowledge Graph Query"].strip() == (
        "- Nodes matched: 8\n- Patterns found: 3\n- Gotchas found: 3\n- Decisions found: 2"
    )
    assert parts["Dependencies Processed"].strip() == (
        "- Task IDs: task_2, task_1\n- Patterns inherited: 2\n- Warnings inherited: 1\n- Blocking questions: 1"
    )
    assert parts["Context Map Filtering"].strip() == (
        "- Total entries: 3\n- Entries after filter: 2\n- Top relevance score: 8"
    )


def test_debug_of_a_task_about_which_nothing_is_known() -> None:
    """000-84"""
    with ALONE.open() as engine:
        text = engine.receipts.get(ALONE.context(engine)).debug()
    assert "- Keywords: draw, first, sketch\n- Domains: none\n- Files Mentioned: none\n- Task Type: none\n" in text
    assert "- Task IDs: none\n" in text
    assert "- Total entries: 0\n- Entries after filter: 0\n- Top relevance score: 0\n" in text


def test_every_context_is_explained_where_the_environment_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """000-84"""
    monkeypatch.setenv("FOVEATE_DEBUG_CONTEXT", "true")
    with DEPENDENT.open() as engine:
        context = DEPENDENT.context(engine)
        said = engine.receipts.get(context).debug()
    captured = capsys.readouterr()
    assert captured.err == said + "\n"
    assert captured.out == ""
    assert "Context Debug" not in context.text


def test_nothing_is_explained_unasked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """000-84"""
    monkeypatch.setenv("FOVEATE_DEBUG_CONTEXT", "false")
    with ALONE.open() as engine:
        ALONE.context(engine)
        assert capsys.readouterr().err == ""


def test_a_project_can_have_every_context_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """000-84"""
    (tmp_path / ".foveate").mkdir()
    (tmp_path / ".foveate" / "config.toml").write_text("debug_context = true\n", "utf-8")
    with foveate.open(tmp_path) as engine:
        engine.context("login")
    assert capsys.readouterr().err.startswith("## Context Debug\n")
