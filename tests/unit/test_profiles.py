"""Profiles: files, layers, problems and what is shown. The builtin budget shapes are in tests/specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.errors import ProfileError
from foveate.pipeline.profiles import check, layer_names, list_profiles, load, names, overlay, profile_dirs, resolve, to_toml
from foveate.pipeline.profiles.files import BUILTIN_DIR
from foveate.types import Profile, Request, Scope, Signals, Slot

BUILTINS = sorted(path.stem for path in BUILTIN_DIR.glob("*.toml"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty directory of profiles."""
    place = tmp_path / "project"
    place.mkdir()
    return place


def write(place: Path, name: str, text: str) -> Path:
    place.mkdir(exist_ok=True)
    path = place / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def slot(profile: Profile, name: str) -> Slot:
    return next(slot for slot in profile.slots if slot.name == name)


def slot_names(profile: Profile) -> list[str]:
    return [slot.name for slot in profile.slots]


def problems_of(text: str, place: Path) -> list[str]:
    """What is wrong with a profile `developer` that says this."""
    write(place, "developer", text)
    return check("developer", [place])


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_project_profile_goes_before_the_persons_and_the_builtin(tmp_path: Path) -> None:
    write(tmp_path / "project", "chat", "total = 1")
    write(tmp_path / "person", "chat", "total = 2")
    both = [tmp_path / "project", tmp_path / "person"]
    assert load("chat", both) == {"total": 1}
    assert load("chat", both[1:]) == {"total": 2}
    assert "messages" in load("chat")["slots"]


def test_what_load_gives_may_be_changed_without_harm() -> None:
    load("default")["slots"].clear()
    assert load("default")["slots"]


def test_a_changed_file_is_read_again(project: Path) -> None:
    write(project, "mine", "total = 4000")
    assert resolve("mine", [project]).total == 4000
    write(project, "mine", "total = 16000")
    assert resolve("mine", [project]).total == 16000


def test_a_name_cannot_leave_its_directory(tmp_path: Path) -> None:
    write(tmp_path, "secret", "total = 1")
    (tmp_path / "profiles").mkdir()
    with pytest.raises(ProfileError, match=r"Profile '\.\./secret' does not exist"):
        load("../secret", [tmp_path / "profiles"])


def test_broken_toml_names_the_file_and_the_line(project: Path) -> None:
    path = write(project, "mine", "total = 4000\nreserve 5\n")
    with pytest.raises(ProfileError) as error:
        load("mine", [project])
    assert str(error.value) == (
        f"Profile 'mine': {path} is not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 9)."
    )


def test_a_file_that_is_not_text_is_named(project: Path) -> None:
    path = project / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError) as error:
        resolve("mine", [project])
    assert str(error.value) == f"Profile 'mine': {path} is not UTF-8 text."


def test_known_lists_every_profile_with_where_it_comes_from(project: Path) -> None:
    path = write(project, "mine", 'description = "Ours"\nextends = "chat"')
    write(project, "broken", "=")
    found = {info.name: info for info in list_profiles([project])}
    assert sorted(found) == sorted(set(names([project])) - {"agent", "map"})
    assert (found["mine"].where, found["mine"].extends, found["mine"].description) == (str(path), "chat", "Ours")
    assert (found["default"].where, found["default"].extends) == ("builtin", "")
    assert found["coding"].extends == "default"
    assert found["assistant"].extends == ""
    assert "is not valid TOML" in found["broken"].description


def test_places_are_the_projects_then_the_persons(tmp_path: Path) -> None:
    project, person = profile_dirs(tmp_path)
    assert project == tmp_path / ".foveate" / "profiles"
    assert person.parts[-2:] == ("foveate", "profiles")


# --- extends -------------------------------------------------------------------------------------------------------


def test_a_profile_stands_on_base_unless_it_says_otherwise(project: Path) -> None:
    write(project, "mine", "total = 4000")
    mine = resolve("mine", [project])
    assert slot_names(mine) == slot_names(resolve("default"))
    assert (mine.name, mine.total, mine.layers["total"]) == ("mine", 4000, "mine")
    assert mine.layers["slots.facts.share"] == "default"


def test_a_profile_that_extends_nothing_stands_alone(project: Path) -> None:
    write(project, "bare", 'extends = ""\ntotal = 100\n[slots.only]\nsource = "search"\ntokens = 50')
    assert resolve("bare", [project]).slots == (Slot(name="only", source="search", tokens=50),)


def test_extends_makes_a_chain(project: Path) -> None:
    write(project, "team", 'extends = "chat"\nreserve = 100')
    write(project, "mine", 'extends = "team"\ntotal = 4000')
    setters = resolve("mine", [project]).layers
    assert setters["slots.rules.tokens"] == "default"
    assert setters["slots.messages.share"] == "chat"
    assert (setters["reserve"], setters["total"]) == ("team", "mine")


def test_an_unknown_parent_gets_a_near_match(project: Path) -> None:
    write(project, "mine", 'extends = "chatt"')
    assert check("mine", [project]) == ["Profile 'mine' extends 'chatt', which does not exist. Did you mean 'chat'?"]


def test_a_cycle_is_named(project: Path) -> None:
    write(project, "a", 'extends = "b"')
    write(project, "b", 'extends = "c"')
    write(project, "c", 'extends = "b"')
    assert check("a", [project]) == ["Profile 'b' extends itself: b -> c -> b."]
    write(project, "d", 'extends = "d"')
    assert check("d", [project]) == ["Profile 'd' extends itself: d -> d."]


def test_a_profile_may_extend_the_builtin_of_its_own_name(project: Path) -> None:
    write(project, "chat", 'extends = "chat"\ntotal = 4000')
    chat = resolve("chat", [project])
    assert chat.total == 4000
    assert chat.layers["total"] == "chat"
    assert chat.layers["slots.messages.share"] == "chat (builtin)"


def test_a_project_can_adjust_base_for_every_profile(project: Path) -> None:
    write(project, "default", "reserve = 500")
    assert resolve("default", [project]).reserve == 500
    chat = resolve("chat", [project])
    assert (chat.reserve, chat.layers["reserve"], chat.layers["total"]) == (500, "default", "default (builtin)")


# --- laying --------------------------------------------------------------------------------------------------------


def test_values_and_lists_replace_and_tables_merge() -> None:
    below = {"total": 1, "weights": {"recency": 0.1, "type": 0.2}, "slots": {"a": {"source": "x", "kinds": ["p", "q"]}}}
    above = {"total": 2, "weights": {"type": 0.3}, "slots": {"a": {"kinds": ["r"]}, "b": {"source": "y"}}}
    assert overlay(below, above) == {
        "total": 2,
        "weights": {"recency": 0.1, "type": 0.3},
        "slots": {"a": {"source": "x", "kinds": ["r"]}, "b": {"source": "y"}},
    }


def test_tokens_and_share_replace_each_other() -> None:
    fixed, shared = {"slots": {"a": {"tokens": 5}}}, {"slots": {"a": {"share": 1}}}
    assert overlay(fixed, shared) == shared
    assert overlay(shared, fixed) == fixed


def test_remove_takes_a_slot_out(project: Path) -> None:
    write(project, "mine", "[slots.facts]\nremove = true")
    mine = resolve("mine", [project])
    assert "facts" not in slot_names(mine)
    assert not [path for path in mine.layers if path.startswith("slots.facts.")]


def test_a_removed_slot_can_be_made_anew() -> None:
    gone = overlay({"slots": {"a": {"source": "x", "share": 1}}}, {"slots": {"a": {"remove": True}}})
    assert overlay(gone, {"slots": {"a": {"source": "y"}}}) == {"slots": {"a": {"source": "y"}}}


def test_removing_an_unknown_slot_gets_a_near_match(project: Path) -> None:
    with pytest.raises(ProfileError) as error:
        overlay({"slots": {"facts": {}}}, {"slots": {"fact": {"remove": True}}})
    assert str(error.value) == "Slot 'fact' cannot be removed: it does not exist. Did you mean 'facts'?"
    assert problems_of("[slots.fact]\nremove = true", project) == [
        "Profile 'developer' removes slot 'fact', which does not exist. Did you mean 'facts'?"
    ]


def test_an_optional_slot_is_left_out_where_the_profile_has_none() -> None:
    easy = resolve(["default", "complexity.easy"])
    assert slot(easy, "patterns").max_items == 3
    assert slot_names(easy) == slot_names(resolve("default"))
    assert not [path for path in easy.layers if "prior_work" in path or path.endswith("optional")]


def test_an_optional_removal_of_a_slot_that_is_not_there_does_nothing(project: Path) -> None:
    assert problems_of("[slots.prior_work]\nremove = true\noptional = true", project) == []


def test_layers_named_later_bring_only_themselves(project: Path) -> None:
    write(project, "reviewer", "[slots.decisions]\nmax_items = 7")
    profile = resolve(["assistant", "reviewer"], [project])
    assert slot_names(profile) == slot_names(resolve("assistant"))
    assert (slot(profile, "decisions").max_items, profile.layers["slots.decisions.max_items"]) == (7, "reviewer")
    assert profile.name == "assistant"


def test_a_layer_already_laid_is_not_laid_again_over_others(project: Path) -> None:
    write(project, "reviewer", 'extends = "default"\nreserve = 10')
    write(project, "mine", "total = 4000")
    assert resolve(["mine", "reviewer"], [project]).total == 4000


def test_the_call_is_the_last_layer() -> None:
    call = {"total": 9000, "slots": {"facts": {"tokens": 100, "kinds": ("fact",)}}}
    profile = resolve(["coding", "complexity.easy"], call=call)
    facts = slot(profile, "facts")
    assert (profile.total, facts.tokens, facts.share, facts.kinds) == (9000, 100, None, ("fact",))
    assert profile.layers["slots.facts.tokens"] == profile.layers["total"] == "call"
    assert "slots.facts.share" not in profile.layers
    assert profile.layers["slots.patterns.max_items"] == "complexity.easy"
    assert profile.layers["slots.code_references.source"] == "coding"


def test_every_value_that_a_layer_set_names_its_layer() -> None:
    profile = resolve(["coding", "complexity.normal"])
    assert set(profile.layers.values()) == {"default", "coding", "complexity.normal"}
    assert {path.split(".")[1] for path in profile.layers if path.startswith("slots.")} == set(slot_names(profile))


def test_slots_come_stable_first_then_by_order_then_by_name(project: Path) -> None:
    lines = ['extends = ""', "total = 100"]
    for name, order, stable in [("d", 1, False), ("c", 9, True), ("b", 5, False), ("a", 5, False)]:
        lines += [
            f"[slots.{name}]",
            'source = "search"',
            "share = 1",
            f"order = {order}",
            f"stable = {str(stable).lower()}",
        ]
    write(project, "mine", "\n".join(lines))
    assert slot_names(resolve("mine", [project])) == ["c", "d", "a", "b"]


def test_stable_slots_are_system_and_volatile_ones_user_unless_set() -> None:
    base = resolve("default")
    assert {slot.role for slot in base.slots if slot.stable} == {"system"}
    assert {slot.role for slot in base.slots if not slot.stable and slot.source != "censors"} == {"user"}
    assert slot(resolve("default", call={"slots": {"facts": {"role": "system"}}}), "facts").role == "system"


# --- the total of a call -------------------------------------------------------------------------------------------


def test_a_call_sets_the_total_and_the_profile_remembers_what_it_is_written_for() -> None:
    half = resolve("task-files", total=75_000)
    assert (half.total, half.written_for, half.reserve) == (75_000, 150_000, 16_000)
    assert half.layers["total"] == "call"
    assert half.layers["reserve"] == "task-files"


def test_a_larger_total_leaves_what_is_fixed() -> None:
    large = resolve("task-files", total=300_000)
    assert (large.total, large.reserve, slot(large, "repo_map").tokens) == (300_000, 16_000, 2000)


def test_a_total_below_the_keep_slots_is_the_budgets_to_judge() -> None:
    assert resolve("default", total=100).total == 100


@pytest.mark.parametrize("total", [0, -1, True])
def test_a_total_must_be_above_0(total: int) -> None:
    with pytest.raises(ProfileError) as error:
        resolve("default", total=total)
    assert str(error.value) == f"The call: total must be a whole number above 0, got {total!r}."


# --- problems ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("totl = 5", "Profile 'developer' has no setting 'totl'. Did you mean 'total'?"),
        (
            "[slots.facts]\nmax_item = 3",
            "Profile 'developer' has no slot setting 'max_item'. Did you mean 'max_items'?",
        ),
        (
            "[slots.pattern]\nmax_items = 3",
            "Profile 'developer' has no slot 'pattern'. Did you mean 'patterns'? A new slot needs a source.",
        ),
        ("[weights]\nrelevence = 1", "Profile 'developer' has no weight 'relevence'. Did you mean 'relevance'?"),
        ("[fields]\ntag = 1", "Profile 'developer' has no field 'tag'. Did you mean 'tags'?"),
        ("total = 0", "Profile 'developer': total must be a whole number above 0, got 0."),
        ("total = 8000.5", "Profile 'developer': total must be a whole number above 0, got 8000.5."),
        ("extends = 5", "Profile 'developer': extends must be text, got 5."),
        ("slots = 5", "Profile 'developer': slots must be a table, got 5."),
        ("[slots]\nfacts = 5", "Profile 'developer': slots.facts must be a table, got 5."),
        (
            "[slots.'a b']\nshare = 1",
            "Profile 'developer': the slot name 'a b' may have letters, digits, '-' and '_' only.",
        ),
        (
            "[slots.facts]\nmax_items = 'ten'",
            "Profile 'developer': slots.facts.max_items must be a whole number, 0 or more, got 'ten'.",
        ),
        (
            "[slots.facts]\nmax_items = true",
            "Profile 'developer': slots.facts.max_items must be a whole number, 0 or more, got True.",
        ),
        (
            "[slots.facts]\nkinds = 'fact'",
            "Profile 'developer': slots.facts.kinds must be a list of names, got 'fact'.",
        ),
        ("[slots.facts]\nshare = -1", "Profile 'developer': slots.facts.share must be a number, 0 or more, got -1."),
        ("[slots.facts]\nshare = nan", "Profile 'developer': slots.facts.share must be a number, 0 or more, got nan."),
        ("[weights]\nrecency = -1", "Profile 'developer': weights.recency must be a number, 0 or more, got -1."),
        (
            "[slots.facts]\nmin_relevance = 1.5",
            "Profile 'developer': slots.facts.min_relevance must be a number from 0 to 1, got 1.5.",
        ),
        (
            "[slots.facts]\nlevel = 'tiny'",
            "Profile 'developer': slots.facts.level must be full, passage, summary or micro, got 'tiny'.",
        ),
        ("[slots.facts]\nrole = 'tool'", "Profile 'developer': slots.facts.role must be system or user, got 'tool'."),
        ("half_life_hours = 0", "Profile 'developer': half_life_hours must be a number above 0, got 0."),
        (
            "[slots.facts]\ntokens = 5\nshare = 5",
            "Profile 'developer': slot 'facts' has both tokens and share; give it one of them.",
        ),
        (
            "[slots.todo]\nsource = 'search'",
            "Profile 'developer': slot 'todo' has neither tokens nor share; give it one of them.",
        ),
        (
            "[slots.facts]\nremove = true\nshare = 5",
            "Profile 'developer': slot 'facts' is removed and set at once; do one of them.",
        ),
        (
            "[slots.decisions]\nlevel = 'full'",
            "Profile 'developer': slot 'decisions' has level 'full', longer than its max_level 'passage'.",
        ),
        ("reserve = 8000", "Profile 'developer': the reserve of 8000 leaves nothing of the total of 8000."),
        (
            "reserve = 7000",
            "Profile 'developer': keep slots (1500) and reserve (7000) exceed the total of 8000 by 500 tokens.",
        ),
        (
            "extends = ''\ntotal = 5\n[slots.a]\nsource = 'search'\nshare = 0",
            "Profile 'developer': the shares sum to 0; give one slot a share above 0.",
        ),
        ("extends = ''", "Profile 'developer' has no total."),
        ("extends = ''\ntotal = -5", "Profile 'developer': total must be a whole number above 0, got -5."),
    ],
)
def test_each_problem_is_said_once_and_in_full(text: str, problem: str, project: Path) -> None:
    assert problems_of(text, project) == [problem]
    with pytest.raises(ProfileError) as error:
        resolve("developer", [project])
    assert str(error.value) == problem


def test_all_problems_come_at_once(project: Path) -> None:
    write(project, "developer", "totl = 5\nreserve = 8000\n[slots.facts]\nshare = 'all'\n[slots.todo]\nsource = 'x'")
    with pytest.raises(ProfileError) as error:
        resolve("developer", [project], call={"extends": "chat", "weight": {}}, total=0)
    assert str(error.value).splitlines() == [
        "Profile 'developer' has no setting 'totl'. Did you mean 'total'?",
        "Profile 'developer': slots.facts.share must be a number, 0 or more, got 'all'.",
        "The call has no setting 'weight'. Did you mean 'weights'?",
        "Profile 'developer': slot 'todo' has neither tokens nor share; give it one of them.",
        "Profile 'developer': the reserve of 8000 leaves nothing of the total of 8000.",
        "The call cannot extend a profile; name the profile instead.",
        "The call: total must be a whole number above 0, got 0.",
    ]


def test_a_profile_that_was_edited_is_merged_anew(project: Path) -> None:
    write(project, "developer", "total = 5000")
    assert resolve("developer", [project]).total == 5000
    write(project, "developer", "total = 60_000")
    assert resolve("developer", [project]).total == 60_000
    assert resolve("developer", [project], total=700).total == 700
    assert resolve("developer", [project]).total == 60_000


def test_a_missing_layer_does_not_hide_the_problems_of_the_others(project: Path) -> None:
    write(project, "developer", "totl = 5")
    with pytest.raises(ProfileError) as error:
        resolve(["developer", "complexity.esy", "zzz"], [project])
    assert str(error.value).splitlines() == [
        "Complexity 'esy' does not exist. Did you mean 'easy'?",
        f"Profile 'zzz' does not exist. Known: {', '.join(names([project]))}.",
        "Profile 'developer' has no setting 'totl'. Did you mean 'total'?",
    ]


def test_check_takes_a_file(project: Path) -> None:
    path = write(project, "mine", "totl = 5")
    assert check(path) == check(str(path)) == ["Profile 'mine' has no setting 'totl'. Did you mean 'total'?"]
    assert check(BUILTIN_DIR / "default.toml") == []
    assert check("nowhere.toml") == ["File 'nowhere.toml' does not exist."]


def test_the_profile_in_the_documentation_resolves(project: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/concepts/profiles.md").read_text(encoding="utf-8")
    write(project, "support", page.split("```toml\n")[1].split("```")[0])
    support = resolve("support", [project])
    assert slot_names(support)[4:8] == ["given", "open_cases", "recent", "messages"]
    assert "patterns" not in slot_names(support)
    assert (support.layers["slots.messages.max_items"], support.layers["slots.messages.share"]) == ("support", "chat")


# --- showing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILTINS)
def test_a_builtin_profile_resolves_and_reads_back_as_shown(name: str, project: Path) -> None:
    profile = resolve(name)
    write(project, "shown", to_toml(profile))
    again = resolve("shown", [project])
    assert (again.name, again.total, again.reserve, again.slots) == (
        profile.name,
        profile.total,
        profile.reserve,
        profile.slots,
    )
    assert (again.weights, again.fields, again.half_life_hours, again.vector_weight) == (
        profile.weights,
        profile.fields,
        profile.half_life_hours,
        profile.vector_weight,
    )


def test_a_shown_profile_names_the_layer_of_each_value() -> None:
    shown = to_toml(resolve(["coding", "complexity.easy"]))
    assert shown.startswith('name = "coding"\nextends = ""\ntotal = 8000  # default\nreserve = 0  # default\n')
    assert 'heading = "Patterns to Follow"  # default\n' in shown
    assert "share = 15.0  # coding\nmax_items = 3  # complexity.easy\n" in shown


# --- choosing ------------------------------------------------------------------------------------------------------


def request(**settings: str) -> Request:
    return Request(query="why", scope=Scope("p"), now=0, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ("default",)),
        ({"profile": "coding", "agent": "reviewer"}, ("coding", "reviewer")),
        ({"profile": "coding", "agent": "stranger"}, ("coding",)),
        ({"agent": "reviewer", "complexity": "complex"}, ("default", "reviewer", "complexity.complex")),
        ({"profile": "reviewer", "agent": "reviewer"}, ("reviewer",)),
    ],
)
def test_profile_then_agent_then_complexity_are_laid(settings: dict[str, str], chosen: tuple[str, ...]) -> None:
    assert layer_names(request(**settings), Signals(), {"reviewer"}) == chosen


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("complexity-easy", "the complexity 'easy' is chosen with complexity=\"easy\"."),
        ("frame-debug", "the frame 'debug' is chosen with frame=\"debug\"."),
        ("frames.debug", "the frame 'debug' is chosen with frame=\"debug\"."),
        ("debug", "the frame 'debug' is chosen with frame=\"debug\"."),
        ("input-short", "the input 'short' is chosen by the length of the question."),
    ],
)
def test_a_frame_and_a_complexity_are_not_profiles(name: str, hint: str) -> None:
    with pytest.raises(ProfileError) as error:
        resolve(name)
    assert str(error.value) == f"{name!r} is not a profile: {hint}"


def test_a_profile_may_change_a_complexity(project: Path) -> None:
    write(project, "mine", "[complexity.easy.slots]\npatterns = { max_items = 1 }")
    easy = resolve(["mine", "complexity.easy"], [project])
    assert (slot(easy, "patterns").max_items, slot(easy, "warnings").max_items) == (1, 2)
    assert slot(resolve(["default", "complexity.easy"], [project]), "patterns").max_items == 3
    assert problems_of("[complexity.easy.slots]\npatterns = { max_item = 1 }", project) == [
        "Complexity 'easy' has no slot setting 'max_item'. Did you mean 'max_items'?"
    ]
