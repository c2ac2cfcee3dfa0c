"""The result of a call: what the model receives, what it cost, and what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foveate.pipeline.assembly import build_messages, join_sections, render_line
from foveate.pipeline.run import Run
from foveate.pipeline.task_view import Computed, task_view
from foveate.receipts.receipt import Receipt, build_receipt
from foveate.records import fence
from foveate.types import (
    AnthropicBlock,
    AnthropicPrompt,
    Budget,
    Delta,
    Item,
    LeftOut,
    Message,
    Prefix,
    Section,
    Signals,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A computed context. `str(context)` is its text."""

    id: str
    sections: tuple[Section, ...]
    left_out: tuple[LeftOut, ...]
    budget: Budget
    profile: str
    counter: str
    signals: Signals
    prefix: Prefix
    considered: Mapping[str, int] = field(default_factory=dict)
    """Number of candidates that each source brought."""
    warnings: tuple[str, ...] = ()
    tag: str = fence.NO_TAG
    """Tag of the fences around quoted text; it is the same throughout a session."""
    run: Run = field(compare=False)
    """The run that computed this context."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        size = f"{self.tokens:,} of {self.budget.total:,} tokens"
        return f"<Context {self.id}: {size}, {len(self.items)} items, {len(self.left_out)} left out, profile {self.profile}>"

    @property
    def receipt(self) -> Receipt:
        """Return the receipt: every candidate, and the reason for each decision."""
        return build_receipt(self.run)

    @property
    def text(self) -> str:
        """Everything that the model sees, in order."""
        return join_sections(self.sections)

    @property
    def stable(self) -> str:
        """The beginning of the system message, which stays byte-identical until its own content changes."""
        return join_sections(section for section in self.sections if _is_stable_system(section))

    @property
    def volatile(self) -> str:
        """The rest. It goes last, where no cached prefix follows it."""
        return join_sections(section for section in self.sections if not _is_stable_system(section))

    @property
    def items(self) -> tuple[Item, ...]:
        """All items, in the order of the text."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def tokens(self) -> int:
        """Tokens of the messages as sent, framing included."""
        return self.budget.used

    @property
    def truncated(self) -> bool:
        """True if a larger budget would show more."""
        return any(lost.reason == "budget" for lost in self.left_out)

    def messages(self) -> list[Message]:
        """Return the context as messages for OpenAI and most frameworks. The question is not in them: append it."""
        return build_messages(self.sections)

    def anthropic(self) -> AnthropicPrompt:
        """Return the context as arguments for Anthropic, with a `cache_control` mark at the end of the stable part."""
        system = [section for section in self.sections if section.role == "system"]
        stable = join_sections(section for section in system if section.stable)
        volatile = join_sections(section for section in system if not section.stable)
        blocks: list[AnthropicBlock] = []
        if stable:
            blocks.append({"type": "text", "text": stable, "cache_control": {"type": "ephemeral"}})
        if volatile:
            blocks.append({"type": "text", "text": volatile})
        return {"system": blocks, "messages": [message for message in self.messages() if message["role"] == "user"]}

    def computed(self) -> Computed:
        """Return the items under the names of a task's computed result: `patterns_to_follow`, `prior_work`, ..."""
        return task_view(self.items, self.left_out, self.signals)

    def delta(self, previous: Context) -> Delta:
        """Return what is new, changed or withdrawn since an earlier context."""
        before = {item.id: item for item in previous.items}
        now = {item.id: item for item in self.items}
        added = tuple(item for id, item in now.items() if id not in before)
        changed = tuple(item for id, item in now.items() if id in before and item.text != before[id].text)
        withdrawn = tuple(item for id, item in before.items() if id not in now)
        text = _delta_text(added, changed, withdrawn, self.tag)
        return Delta(added, changed, withdrawn, text)


def _is_stable_system(section: Section) -> bool:
    # What a repository says of itself is stable, too, but belongs to the user's message.
    return section.stable and section.role == "system"


def context_of(run: Run) -> Context:
    """Return the context that a run computed."""
    return Context(
        id=run.id,
        sections=run.sections,
        left_out=run.left_out,
        budget=run.budget,
        profile=run.profile.name,
        counter=run.request.counter,
        signals=run.signals,
        prefix=run.prefix,
        considered={report.source: report.found for report in run.reports},
        warnings=run.warnings,
        tag=run.tag,
        run=run,
    )


def _delta_text(added: Sequence[Item], changed: Sequence[Item], withdrawn: Sequence[Item], tag: str) -> str:
    blocks = [
        ("New", [(item.record, item.text) for item in added]),
        ("Changed", [(item.record, item.text) for item in changed]),
        ("No longer shown", [(item.record, render_line(item.candidate, "micro")) for item in withdrawn]),
    ]
    return "\n".join(f"## {title}\n{fence.render_fenced(lines, tag)}" for title, lines in blocks if lines)
