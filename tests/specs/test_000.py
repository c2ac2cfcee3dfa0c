"""000, computed context: what of it works. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import foveate
from foveate import Context
from worlds import TASK, open_engine

TOPICS = ("login", "billing", "search", "upload", "export")


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="coding") as engine:
        yield engine


def content(context: Context, name: str) -> str:
    return next((section.content for section in context.sections if section.name == name), "")


def shown(context: Context, name: str) -> list[str]:
    return [item.candidate.record.id for item in context.items if item.candidate.slot == name]


def knowledge(engine: foveate.Engine) -> None:
    """More than any task needs, of every sort."""
    for topic in TOPICS:
        for n in range(30):
            engine.add("pattern", f"The {topic} module follows pattern p{n} for its {topic} handlers")
            engine.add(
                "component", f"Part c{n} of {topic}", component=f"{topic} part {n}", location=f"src/{topic}/part{n}.py"
            )
            engine.add("gotcha", f"The {topic} module breaks when flag g{n} is set")
            engine.add("decision", f"The {topic} module uses library d{n}")
            engine.add("task", f"Wrote the {topic} step t{n}", name=f"{topic} step {n}")


def test_each_call_is_computed_anew_from_state(engine: foveate.Engine) -> None:
    """000-01, 000-02, 000-03"""
    engine.add("gotcha", "The login form loses its token")
    engine.add("gotcha", "The export job leaks memory")
    engine.compute("Fix the export job")
    assert "export" not in engine.compute("Fix the login form").text
    engine.add("gotcha", "The login page caches passwords")
    assert "caches passwords" in engine.compute("Fix the login form").text


def test_never_the_whole_map_and_never_all_patterns(engine: foveate.Engine) -> None:
    """000-06, 000-07, 000-08, 000-09, 000-11, 000-99, 000-102"""
    knowledge(engine)
    context = engine.compute("Change the billing module and its handlers")
    assert len(shown(context, "code_references")) == 10
    assert len(shown(context, "patterns")) == 5
    for other in ("login", "search", "upload", "export"):
        assert f"The {other} module" not in content(context, "patterns")
    assert content(context, "code_references").count("`src/billing/") == 10


def test_keywords_are_terms_in_lower_case_without_stop_words(engine: foveate.Engine) -> None:
    """000-14, 000-15, 000-16"""
    signals = engine.compute("Add the JWT Token to the Login Endpoint").signals
    assert signals.keywords == ("add", "jwt", "token", "login", "endpoint")


def test_files_mentioned_are_paths_of_the_text(engine: foveate.Engine) -> None:
    """000-23"""
    assert engine.compute("Change src/auth/login.py and README.md").signals.paths == ("src/auth/login.py", "README.md")


def test_each_record_stands_once(engine: foveate.Engine) -> None:
    """000-28"""
    id = engine.add("pattern", "Login handlers log in one place", tags=["login", "auth"]).record.id
    context = engine.compute("login auth handlers")
    assert [item.candidate.record.id for item in context.items] == [id]


def test_lines_of_patterns_gotchas_and_decisions(engine: foveate.Engine) -> None:
    """000-29, 000-30, 000-31, 000-56, 000-57, 000-58, 000-69, 000-71, 000-73"""
    engine.add("pattern", "Login handlers log in one place", location="src/log.py")
    engine.add("gotcha", "Login tokens expire at midnight", severity="high")
    engine.add("gotcha", "Login pages are cached")
    engine.add("decision", "Login uses JWT", rationale="no shared cache")
    context = engine.compute("login")
    assert content(context, "patterns") == "## Patterns to Follow\n- **Login handlers log in one place** (see: src/log.py)\n"
    assert content(context, "warnings").splitlines()[0] == "## Warnings"
    assert "- ⚠️ **high**: Login tokens expire at midnight\n" in content(context, "warnings")
    assert "- ⚠️ **medium**: Login pages are cached\n" in content(context, "warnings")
    assert content(context, "decisions").endswith("- Login uses JWT — no shared cache\n")


def test_a_pattern_without_a_location_points_nowhere(engine: foveate.Engine) -> None:
    """000-69"""
    engine.add("pattern", "Login handlers log in one place")
    assert content(engine.compute("login"), "patterns").endswith("- **Login handlers log in one place**\n")


def test_nothing_is_said_of_decisions_where_there_are_none(engine: foveate.Engine) -> None:
    """000-73"""
    assert content(engine.compute("login"), "decisions") == ""


def test_lists_are_ordered_by_relevance(engine: foveate.Engine) -> None:
    """000-33"""
    engine.add("gotcha", "Search is slow on Mondays")
    engine.add("gotcha", "Login tokens of the login page expire")
    engine.add("gotcha", "The login page is slow")
    found = shown(engine.compute("Why do login tokens expire?"), "warnings")
    assert found[0] == "gotcha_2"
    scores = [item.candidate.score for item in engine.compute("login page").items]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("complexity", "patterns", "gotchas", "references", "tasks"),
    [("easy", 3, 2, 5, 2), ("normal", 5, 3, 10, 4), ("complex", 10, 5, 20, 8), (None, 5, 3, 10, 4)],
)
def test_one_call_computes_and_limits_by_complexity(
    engine: foveate.Engine, complexity: str | None, patterns: int, gotchas: int, references: int, tasks: int
) -> None:
    """000-34, 000-35, 000-36, 000-54, 000-80, 000-81, 000-82, 000-83, 000-89"""
    knowledge(engine)
    context = engine.compute("Change a step or part of the upload module", complexity=complexity)
    counts = [len(shown(context, name)) for name in ("patterns", "warnings", "code_references", "prior_work")]
    assert counts == [patterns, gotchas, references, tasks]
    assert len(shown(context, "decisions")) == 3


def test_code_references_give_location_component_and_notes(engine: foveate.Engine) -> None:
    """000-63"""
    engine.add("component", "Routes and guards", component="login router", location="src/api/router.py:1")
    assert "- `src/api/router.py:1` login router — Routes and guards\n" in engine.compute("login router").text


def test_what_is_empty_says_so(engine: foveate.Engine) -> None:
    """000-70, 000-72, 000-77"""
    assert engine.compute("login").text == (
        "## Warnings\nNo known gotchas for this task area.\n\n"
        "## Patterns to Follow\nNo specific patterns identified for this task.\n\n"
        "## Code References\nExplore the codebase as needed. No specific references pre-identified.\n"
    )


def test_the_signals_and_every_choice_can_be_seen(engine: foveate.Engine) -> None:
    """000-64, 000-100"""
    engine.add("gotcha", "Login tokens expire at midnight")
    context = engine.compute("login tokens in src/login.py")
    document = engine.receipt(context).document
    assert document["signals"]["keywords"][0] == "login"
    assert document["signals"]["paths"] == ["src/login.py"]
    assert engine.why("gotcha_1", context)["sentence"].startswith("kept in 'warnings'")


def test_a_context_stays_small_while_the_project_grows(engine: foveate.Engine) -> None:
    """000-98, 000-101"""
    engine.add("gotcha", "The billing module rounds to cents")
    small = engine.compute("Change the billing module")
    knowledge(engine)
    large = engine.compute("Change the billing module")
    assert large.tokens <= 2000
    assert large.tokens < 20 * small.tokens


def test_the_task_world_reads_as_the_document_asks() -> None:
    """000-69, 000-71, 000-80"""
    with TASK.open() as engine:
        context = TASK.compute(engine)
    headings = [line for line in context.text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Identity",
        "## Active Constraints",
        "## Relevant Past Decisions",
        "## Warnings",
        "## Patterns to Follow",
        "## Prior Work",
        "## Code References",
    ]
