"""The architect: plans how an issue is solved. It reads the issue and, where there is one, the design."""

from __future__ import annotations

from collections.abc import Iterator

from foveate.agents.strategies import Agent, Answer, ContextStrategy, State, titled
from foveate.errors import InputError
from foveate.records.render import title_of
from foveate.types import Section

NO_ISSUE = "The architect needs an issue. Add one: `foveate add issue DESCRIPTION --set title=TITLE`."


class ArchitectContextStrategy(ContextStrategy):
    """002: the issue's title and description, and the design document where there is one."""

    agent = "architect"

    def sections(self, state: State) -> Iterator[Section]:
        issue = self.issue_summary(state)
        if issue is None:
            raise InputError(NO_ISSUE)
        yield Section(name="issue", content=issue, source="latest issue")
        design = state.latest("design")
        if design is not None:
            yield Section(name="design", content=titled(design), source="latest design")

    def question(self, state: State) -> str | None:
        """The issue, also where a task is at hand."""
        issue = state.latest("issue")
        return None if issue is None else title_of(issue) or issue.text


class Architect(Agent[Answer]):
    context_strategy = ArchitectContextStrategy
