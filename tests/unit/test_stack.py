"""The task stack: durable, one for each agent and session; popping turns a frame's detail into its result."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate import Engine, InputError
from foveate.pipeline.profiles import resolve
from foveate.testing import FixedClock
from records import add_record
from worlds import open_engine


def test_push_peek_path_and_pop() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        assert stack.current() is None
        assert stack.path() == []
        root = stack.push("Ship the release")
        part = stack.push("Write the notes", name="Notes")
        assert (part.parent, part.status) == (root.id, "active")
        assert stack.current() == part
        assert [task.name for task in stack.path()] == ["Ship the release", "Notes"]
        popped = stack.pop("Notes are in docs/notes.md")
        assert (popped.id, popped.status, popped.result) == (part.id, "completed", "Notes are in docs/notes.md")
        assert engine.tasks.get(root.id).children == (part.id,)
        assert [task.id for task in stack.path()] == [root.id]
        stack.pop("Released")
        assert stack.current() is None
        with pytest.raises(InputError, match="stack is empty"):
            stack.pop()


def test_it_survives_a_restart_and_is_not_shared(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.scoped(session="s1").tasks.push("Goal of s1")
        engine.scoped(session="s1").tasks.push("Part of s1")
        engine.scoped(agent="coder", session="s1").tasks.push("Goal of the coder")
    with foveate.open(tmp_path, personal=False, session="s1") as engine:
        assert [task.name for task in engine.tasks.path()] == ["Goal of s1", "Part of s1"]
        assert [task.name for task in engine.scoped(agent="coder").tasks.path()] == ["Goal of the coder"]
        assert engine.scoped(session="s2").tasks.current() is None
        assert engine.scoped(agent="other").tasks.current() is None


def test_users_do_not_move_each_others_stack(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.tasks.push("Goal of the project")
    with foveate.open(tmp_path, personal=False, user="alice") as alice:
        assert alice.tasks.current() is None
        alice.tasks.push("Goal of Alice")
    with foveate.open(tmp_path, personal=False) as engine:
        assert [task.name for task in engine.tasks.path()] == ["Goal of the project"]


def test_an_agents_goals_are_not_shown_to_others() -> None:
    with open_engine() as engine:
        engine.scoped(agent="alice").tasks.push("Find out about the login merger")
        engine.tasks.add("Login", objective="Fix the login", key="login")
        assert "merger" not in engine.context(task="login", agent="bob").text
        assert engine.tasks.list()[0].name == "Login"


def test_a_goal_without_a_name_is_still_shown_beside_its_result() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        stack.push("Root")
        stack.push("Investigate the flaky build")
        assert stack.pop("A clock was mocked twice").name == "Investigate the flaky build"
        stack.push("Next")
        assert "#### Investigate the flaky build\nA clock was mocked twice\n" in engine.context(profile="subtask").text
        stack.push("x" * 200)
        assert len(stack.current().name) == 80  # type: ignore[union-attr]


@pytest.mark.slow
def test_completed_siblings_are_found_among_many_that_are_not() -> None:
    with open_engine() as engine:
        parent = engine.tasks.add("Plan").id
        parts = [engine.tasks.add(f"Part {n}", parent=parent).id for n in range(300)]
        for n in range(3):
            engine.tasks.complete(parts[n], f"Result {n} of the plan")
        text = engine.context(task=parts[3], profile="subtask").text
        assert all(f"Result {n} of the plan" in text for n in range(3))


def test_the_nearest_ancestor_matters_most() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        for n in range(12):
            stack.push(f"Goal {n} " + "of many words " * 30)
        path = next(s for s in engine.context(profile="subtask", budget=1500).sections if s.name == "path")
        names = [item.record.data["name"] for item in path.items]
        assert names[0].startswith("Goal 10 ")
        assert [name.split()[1] for name in names] == [str(n) for n in range(10, 10 - len(names), -1)]


def test_a_result_is_a_text() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        stack.push("B")
        with pytest.raises(InputError, match="must be a text"):
            stack.pop(5)  # type: ignore[arg-type]


def test_a_frame_that_was_completed_elsewhere_is_popped_as_it_is() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        stack.push("Root")
        part = stack.push("Part")
        engine.tasks.complete(part.id, "Done by another")
        assert stack.pop("ignored").result == "Done by another"
        assert [task.name for task in stack.path()] == ["Root"]


def test_the_goal_on_top_is_the_question_where_none_is_asked() -> None:
    with open_engine() as engine:
        engine.add("fact", "Release notes live in docs/notes.md")
        with pytest.raises(InputError, match="Pass a query or a task"):
            engine.context(profile="subtask")
        stack = engine.scoped(session="s1").tasks
        stack.push("Ship the release")
        stack.push("Write the release notes")
        context = engine.context(profile="subtask", session="s1")
        assert "Release notes live in docs/notes.md" in context.text
        assert "release" in context.signals.keywords


def test_ancestors_read_as_goals_or_results_and_siblings_as_results() -> None:
    with open_engine() as engine:
        stack = engine.tasks
        stack.push("Ship the release", name="Root")
        stack.push("Prepare the docs", name="Docs")
        done = stack.push("Find broken links", name="Links").id
        stack.pop("Three links were broken")
        stack.push("Sketch a figure", name="Figure")
        engine.tasks.edit(stack.current().id, status="blocked", reason="no pencil")  # type: ignore[union-attr]
        stack.push("Draw it", name="Draw")
        stack.pop("Drawn")
        stack.push("Colour it", name="Colour")
        context = engine.context(profile="subtask")
        shown = {section.name: section.content for section in context.sections}
        assert "Ship the release" in shown["root_goal"]
        assert shown["path"].index("Sketch a figure") < shown["path"].index("Prepare the docs")
        assert "Drawn" in shown["siblings"]
        assert "Three links" not in context.text  # a sibling of an ancestor is not of this frame
        assert "Colour it" in shown["task"]
        engine.tasks.complete(engine.tasks.list(status="blocked")[0].id, "A figure of three boxes")
        path = next(section.content for section in engine.context(profile="subtask").sections if section.name == "path")
        assert "A figure of three boxes" in path
        assert "Sketch a figure" not in path
        assert engine.tasks.get(done).status == "completed"


def test_shares_of_root_path_and_siblings() -> None:
    slots = {slot.name: slot for slot in resolve("subtask").slots}
    assert [slots[name].share for name in ("root_goal", "path", "siblings")] == [5, 15, 10]
    assert sum(slot.share or 0 for slot in slots.values()) == 100 + (slots["messages"].share or 0)


def _step(engine: Engine, n: int) -> None:
    """Work on the current frame: notes that belong to it alone."""
    scope = engine.scoped().scope
    for line in range(3):
        add_record(
            engine, "scratch", f"Note {n}.{line}: looked at module {n * 7 % 31} and measured {n * 13 % 97} ms", scope=scope
        )


@pytest.mark.slow
def test_the_size_depends_on_depth_and_not_on_steps_done() -> None:
    """A tree of 200 steps: what has been done elsewhere costs nothing, and what siblings came to keeps to its tenth."""
    sizes: list[list[int]] = []
    beside: list[int] = []
    steps = 0
    with open_engine(clock=FixedClock(step=1000)) as engine:
        stack = engine.tasks
        stack.push("Ship the release of the archive")
        for area in range(10):
            stack.push(f"Area {area}: prepare module {area} of the archive")
            sizes.append([])
            for leaf in range(19):
                steps += 1
                stack.push(f"Step {steps}: change part {leaf} of module {area}")
                _step(engine.scoped(task=stack.current()), steps)
                context = engine.context(profile="subtask", budget=1000)
                sizes[-1].append(context.tokens)
                beside += [slot.used for slot in context.budget.slots if slot.name == "siblings"]
                assert f"Note {steps}.0" in context.text
                assert "Ship the release" in context.text
                stack.pop(f"Part {leaf} of module {area} is changed and its {steps % 9} tests pass")
                assert f"Note {steps}.0" not in engine.context(profile="subtask", budget=1000).text
            steps += 1
            stack.pop(f"Module {area} is ready")
    assert steps == 200
    for same_place in zip(*sizes, strict=True):  # after 10 steps or after 190
        assert max(same_place) <= 1.1 * min(same_place)
    assert max(beside) <= 600  # twenty at most, in a tenth and in what flows on from empty slots
    assert max(map(max, sizes)) <= 1000
