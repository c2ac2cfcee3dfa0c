"""The reviewer: judges a change. It reads the diff, what the task was, and what must hold for it to be accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foveate.agents.developer import NO_TASK, described, fenced
from foveate.agents.strategies import Agent, Answer, ContextStrategy, State
from foveate.errors import InputError
from foveate.tasks.task import criteria_of
from foveate.text.format import one_line
from foveate.types import Section

NO_CHANGE = "The reviewer needs a change. Add the diff: `git diff main | foveate add change -`."

_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


class ReviewerContextStrategy(ContextStrategy):
    """002: the code diff, the task's description, its acceptance criteria. The diff is the latest `change`, file by file:
    where not all of it fits, whole files of it do."""

    agent = "reviewer"

    def sections(self, state: State) -> Iterator[Section]:
        task, change = self.current_task(state), state.latest("change")
        if task is None or change is None:
            missing = [NO_TASK.format(agent=self.name)] if task is None else []
            raise InputError([*missing, *([NO_CHANGE] if change is None else [])])
        yield Section(name="task", content=described(task), source="current task")
        for criterion in criteria_of(task):
            yield Section(name="criteria", content=f"- {one_line(criterion)}", source="current task, acceptance_criteria")
        for part in _FILE.split(change.text):
            if part.strip():
                yield Section(name="diff", content=fenced(part, "diff"), source="latest change")


class Reviewer(Agent[Answer]):
    context_strategy = ReviewerContextStrategy
