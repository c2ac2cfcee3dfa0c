"""Frames: which one a question calls for and why, how much it asks, and what the model reads of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import foveate
from foveate import Scope
from foveate.cli import cli
from foveate.errors import ProfileError
from foveate.pipeline.profiles import resolve, with_frame
from foveate.pipeline.profiles.choose import input_size
from foveate.pipeline.profiles.codec import profile_from_json, profile_to_json
from foveate.pipeline.profiles.frames import load_frames, trigger_score
from foveate.pipeline.signals import detect_intent
from foveate.receipts.codec import to_json
from foveate.types import Frame, Request, Signals
from worlds import open_engine

FRAMES = ("conversation", "creative", "debug", "decision", "initiation", "question", "review", "task")
OWN = """
[frames.incident]
title = "Incident"
description = "Users are affected."
questions = ["Who is on call?"]
domains = ["operations"]
[frames.incident.triggers]
words = ["outage", "pager"]
[frames.incident.slots]
frame = { heading = "Current Approach: Incident" }
procedures = { priority = 1.0 }
"""


def chosen(query: str, *places: Path, profile: str = "assistant", **settings: object) -> Signals:
    request = Request(query=query, scope=Scope("main"), now=0, profile=profile, **settings)  # type: ignore[arg-type]
    return with_frame(request, Signals(intent=detect_intent(query)), places)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "frames.toml").write_text(OWN, encoding="utf-8")
    return tmp_path / "profiles"


# --- choosing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "frame", "because"),
    [
        ("Should we use Redis for caching in Newton?", "decision", "it begins with 'should we'"),
        ("Three services run. So, should we add Redis?", "decision", "it begins with 'should we'"),
        ("Postgres vs Redis", "decision", "it contains 'vs'"),
        ("Fix the login page", "debug", "its intent is fix"),
        ("The upload crashes with an error", "debug", "it contains 'crash' and 'error', its intent is fix"),
        ("Please review the pull request", "review", "it contains 'review'"),
        ("Let's brainstorm a few names", "creative", "it contains 'brainstorm'"),
        ("We are starting a new project", "initiation", "it begins with 'we are starting', it contains 'new project'"),
        ("Add a login endpoint", "task", "its intent is action"),
        ("Which region do we run in?", "question", "its intent is question"),
        ("What is a lease?", "question", "its intent is explain"),
        ("Lisbon in spring", "conversation", "no trigger of another frame matches"),
    ],
)
def test_a_question_calls_for_a_frame_and_the_reason_is_told(query: str, frame: str, because: str) -> None:
    found = chosen(query)
    assert (found.frame, found.frame_reason) == (frame, because)


def test_how_a_question_begins_outweighs_a_word_and_an_intent() -> None:
    assert chosen("Should we fix the bug now?").frame == "decision"


@pytest.mark.parametrize("query", ["Write an error-free parser", "Add a bug-free debugger", "Add terror films"])
def test_a_part_of_a_word_calls_for_nothing(query: str) -> None:
    assert chosen(query).frame == "task"


def test_of_two_that_are_called_for_equally_the_lower_order_is_chosen() -> None:
    decision, review = load_frames()["decision"], load_frames()["review"]
    query = "A decision for review"
    assert trigger_score(decision.triggers, query, "other")[0] == trigger_score(review.triggers, query, "other")[0]
    assert decision.order < review.order
    assert chosen(query).frame == "decision"


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert chosen("word " * 1000 + "versus").frame == "conversation"


def test_every_shipped_frame_says_what_it_is_for() -> None:
    assert tuple(sorted(load_frames())) == FRAMES
    for name, frame in load_frames().items():
        assert frame.title == name.capitalize()
        assert frame.description
        assert frame.questions
        profile = resolve(["assistant", f"frames.{name}"])
        slots = {slot.name: slot for slot in profile.slots}
        assert profile.frame == frame
        assert slots["frame"].heading == f"Current Approach: {frame.title}"
        assert len({slots[kind].priority for kind in ("decisions", "procedures", "facts", "episodes")}) > 1


@pytest.mark.parametrize("profile", ["default", "chat", "coding", "task", "subtask", "task-files"])
def test_a_profile_that_wants_no_frames_gets_none(profile: str) -> None:
    assert chosen("Should we use Redis?", profile=profile) == Signals(intent="question")


def test_a_call_may_name_a_frame_for_any_profile() -> None:
    found = chosen("Lisbon", profile="coding", frame="debug")
    assert (found.frame, found.frame_reason, found.input) == ("debug", "the call names it", "")
    assert chosen("Should we?", frame="none").frame_reason == "the call wants none"


def test_an_unknown_frame_gets_a_near_match() -> None:
    with pytest.raises(ProfileError) as error:
        chosen("Lisbon", frame="debgu")
    assert str(error.value) == "Frame 'debgu' does not exist. Did you mean 'debug'?"


def test_a_frame_of_your_own_is_chosen_like_the_others(own: Path) -> None:
    found = chosen("There is an outage, the pager rings", own)
    assert (found.frame, found.frame_reason, found.domains) == (
        "incident",
        "it contains 'outage' and 'pager'",
        ("operations",),
    )


def test_a_frame_of_a_shipped_name_changes_that_frame(tmp_path: Path) -> None:
    (tmp_path / "frames.toml").write_text('[frames.debug.triggers]\nwords = ["wobbly"]\n')
    frame = load_frames([tmp_path / "profiles"])["debug"]
    assert frame.triggers["words"] == ("wobbly",)
    assert frame.triggers["intents"] == ("fix",)
    assert frame.questions == load_frames()["debug"].questions


def test_a_frame_that_is_wrong_is_told_of_with_every_problem(tmp_path: Path) -> None:
    wrong = '[frames.own]\ntitel = "X"\norder = "first"\n[frames.own.triggers]\nintents = ["mend"]\nword = []\n'
    (tmp_path / "frames.toml").write_text(wrong)
    with pytest.raises(ProfileError) as error:
        chosen("Lisbon", tmp_path / "profiles")
    assert str(error.value).splitlines() == [
        "Frame 'own' has no frame setting 'titel'. Did you mean 'title'?",
        "Frame 'own': order must be a whole number, 0 or more, got 'first'.",
        "Frame 'own': triggers.intents must be a list of question, action, fix, explain, other, got ['mend'].",
        "Frame 'own' has no trigger 'word'. Did you mean 'words'?",
    ]


# --- how much is asked ---------------------------------------------------------------------------------------------

COMPLEX = (
    "How should we lay out the architecture of the ingestion service, given that the database migration must end before "
    "spring, and which parts would you move first?"
)


@pytest.mark.parametrize(
    ("query", "extent"),
    [
        ("Which region do we run in?", "short"),
        ("Lisbon", "short"),
        ("Should we use Redis for caching in Newton?", ""),  # a decision is more than it looks
        ("Describe the migration", ""),
        (COMPLEX, "complex"),
        ("Where do the nightly uploads of the three hosts in Lisbon go", ""),
    ],
)
def test_a_question_is_short_or_complex_by_its_size_its_domains_and_its_words(query: str, extent: str) -> None:
    assert chosen(query).input == extent


def test_the_reason_counts_what_was_counted() -> None:
    assert input_size(COMPLEX, Signals(), "decision") == (
        "complex",
        "4 clauses (+1), 'architecture' (+1), 'migration' (+1), a decision (+1)",
    )
    assert input_size("Lisbon", Signals()) == ("short", "1 word, nothing complex in it")


@pytest.mark.slow
def test_a_short_question_leaves_half_of_the_flexible_room_free() -> None:
    with open_engine(profile="assistant") as engine:
        for n in range(400):
            engine.add(
                "decision", f"The deploy of host{chr(97 + n % 26)}{n} was moved to {n} o'clock. It needs a token and a key."
            )
        wide = {"slots": {"decisions": {"max_candidates": 400}}}
        short, usual = (engine.context("deploy", overrides={**wide, "choose_frame": on}) for on in (True, False))
    assert (short.signals.input, usual.signals.input) == ("short", "")
    assert short.tokens == pytest.approx(usual.tokens / 2, rel=0.05)
    assert resolve(["assistant", "input.short"]).layers["flexible_share"] == "input.short"


def test_what_must_be_kept_is_kept_for_a_short_question_too() -> None:
    with open_engine(profile="assistant") as engine:
        engine.add("identity", "Keel. " + "Careful and brief. " * 60)
        engine.add("instruction", "Say so where you do not know.")
        usual = engine.context("Lisbon", overrides={"choose_frame": False}, budget=330)
        short = engine.context("Lisbon", frame="none", budget=330)
    assert (short.signals.input, short.text) == ("", usual.text)  # a call that names its budget gets all of it
    assert short.signals.input_reason == "1 word, nothing complex in it, and the call names its budget"
    assert short.tokens > 100


def test_a_complex_question_raises_decisions_and_procedures() -> None:
    plain, raised = ({s.name: s.share for s in resolve(n).slots} for n in ("assistant", ["assistant", "input.complex"]))
    assert raised == {**plain, "decisions": 3000.0, "procedures": 2250.0}
    assert resolve(["assistant", "input.complex"]).layers["slots.decisions.share"] == "input.complex"
    fixed = resolve(["assistant", "input.complex"], call={"slots": {"decisions": {"tokens": 101}}})
    assert next(slot.tokens for slot in fixed.slots if slot.name == "decisions") == 151


# --- as data -------------------------------------------------------------------------------------------------------


def test_a_profile_with_a_frame_reads_back_from_its_receipt() -> None:
    profile = resolve(["assistant", "frames.decision", "input.complex"])
    assert profile_from_json(json.loads(json.dumps(profile_to_json(profile)))) == profile
    assert isinstance(profile.frame, Frame)


# --- in a context --------------------------------------------------------------------------------------------------


def test_the_frame_is_in_the_prompt_and_in_the_receipt() -> None:
    with open_engine(profile="assistant") as engine:
        context = engine.context("Should we use Redis?")
        document = to_json(engine.receipts.get(context))
        replayed = engine.receipts.replay(context)
    assert context.text == (
        "## Current Approach: Decision\n"
        "A choice is to be made, and it will be lived with.\n"
        "Consider:\n"
        "- What are we optimizing for?\n"
        "- What did we decide last time?\n"
        "- What are the constraints?\n"
    )
    assert document["signals"]["frame"] == document["profile"]["frame"]["title"].lower() == "decision"
    assert document["signals"]["frame_because"] == "it begins with 'should we'"
    assert {"architecture", "infrastructure"} <= set(document["signals"]["domains"])
    assert (replayed.same, replayed.missing) == (True, ())


def test_a_replay_makes_the_frame_from_the_stored_receipt(tmp_path: Path) -> None:
    own = tmp_path / ".foveate" / "frames.toml"
    own.parent.mkdir()
    own.write_text(OWN, encoding="utf-8")
    with foveate.open(tmp_path) as engine:
        context = engine.context("There is an outage", profile="assistant")
    assert "## Current Approach: Incident\nUsers are affected.\nConsider:\n- Who is on call?\n" in context.text
    own.write_text(OWN.replace("Users", "Customers"), encoding="utf-8")
    with foveate.open(tmp_path) as engine:
        assert engine.receipts.replay(context.id).text == context.text


def test_whoever_hands_in_an_approach_has_chosen_one() -> None:
    with open_engine(profile="assistant") as engine:
        context = engine.context("Should we use Redis?", extra={"frame": ["Ask Mira first"]})
    assert context.text == "## Current Approach\n- Ask Mira first\n"
    assert context.signals.frame_reason == "the call passes its own"


def test_without_a_frame_the_slot_is_not_shown() -> None:
    with open_engine(profile="assistant") as engine:
        assert engine.context("Should we use Redis?", frame="none").text == ""


def test_a_frame_changes_nothing_before_it_in_the_prompt() -> None:
    with open_engine(profile="assistant") as engine:
        engine.add("identity", "Keel. Careful and brief.")
        one, other = engine.context("Should we use Redis?"), engine.context("Why does the upload crash?")
    assert one.signals.frame != other.signals.frame
    assert one.prefix == other.prefix
    assert one.prefix.chars > 0


def test_a_question_for_a_task_that_calls_for_nothing_is_a_task() -> None:
    with open_engine(profile="assistant") as engine:
        task = engine.tasks.add("Office", objective="The office in Lisbon").id
        found = engine.context(task=task).signals
    assert (found.frame, found.frame_reason) == ("task", "the request is for a task")


def test_the_command_line_names_a_frame_and_tells_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, list(args))

    assert run("init").exit_code == 0
    asked = ("context", "Should we use Redis?", "--profile", "assistant")
    assert run(*asked).stdout.startswith("## Current Approach: Decision\n")
    assert run(*asked, "--frame", "debug").stdout.startswith("## Current Approach: Debug\n")
    assert run(*asked, "--frame", "none").stdout == ""
    assert "frame decision: it begins with 'should we'\n" in run(*asked, "--explain").stdout
    unknown = run(*asked, "--frame", "debgu")
    assert unknown.exit_code == ProfileError.exit_code
    assert "Frame 'debgu' does not exist. Did you mean 'debug'?" in unknown.stderr


# --- working memory ------------------------------------------------------------------------------------------------


def focus(context: foveate.Context) -> list[str]:
    return [item.record.text for item in context.items if item.section == "working"]


def test_the_current_focus_is_the_task_on_top_and_what_is_still_open() -> None:
    with open_engine(profile="assistant", session="s1") as engine:
        engine.tasks.push("Design the storage")
        engine.add("question", "Who owns the backups?", session="s1")
        engine.add("question", "Who waters the plants?", session="s2")
        thread = engine.add("note", "Come back to the licence", tags=["thread"]).record.id
        engine.add("note", "The office is in Lisbon")
        context = engine.context("Anything else?")
        assert context.text.count("## Current Focus\n") == 1
        assert focus(context)[0] == "Design the storage"
        assert sorted(focus(context)[1:]) == ["Come back to the licence", "Who owns the backups?"]
        assert engine.receipts.replay(context).same
        engine.edit(thread, status="retired")
        assert focus(engine.context("Anything else?"))[1:] == ["Who owns the backups?"]


def test_a_frame_is_named_by_a_text() -> None:
    with open_engine() as engine, pytest.raises(ProfileError, match="Frame 5 does not exist"):
        engine.context("x", frame=5, profile="assistant")
