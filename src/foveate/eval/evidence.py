"""Types of evidence. A piece is present only if its text is in the rendered prompt, whatever a ranking says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.eval.model import RenderedPrompt, normalize_text


@dataclass(frozen=True, slots=True)
class EvidenceText:
    """A text that must be in the prompt word for word, apart from white space, and in the given slot if there is one."""

    id: str
    text: str
    evidence_type: str = "turn"
    slot: str | None = None

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        return _contains_text(prompt.slot_text(self.slot), self.text)


@dataclass(frozen=True, slots=True)
class AnyEvidence:
    """Any of several texts. A session, for example, is present if any of its turns is."""

    id: str
    texts: tuple[str, ...]
    evidence_type: str = "session"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        return any(_contains_text(prompt.normalized_text, text) for text in self.texts)


def session_evidence(turns: Sequence[tuple[str, str]]) -> tuple[AnyEvidence, ...]:
    """Return one piece of evidence for each session of the (session, text) pairs."""
    texts: dict[str, list[str]] = {}
    for session, text in turns:
        texts.setdefault(session, []).append(text)
    return tuple(AnyEvidence(session, tuple(of_session)) for session, of_session in texts.items())


def _contains_text(normalized: str, text: str) -> bool:
    """Return whether a text is there, and not only as a part of longer words. An empty text is never there."""
    wanted = normalize_text(text)
    start = normalized.find(wanted) if wanted else -1
    while start >= 0:
        if not (_is_inside_word(normalized, start) or _is_inside_word(normalized, start + len(wanted))):
            return True
        start = normalized.find(wanted, start + 1)
    return False


def _is_inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
