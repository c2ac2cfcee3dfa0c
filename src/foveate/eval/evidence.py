"""Types of evidence. A piece is present only if its text is in the rendered prompt, whatever a ranking says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.eval.model import RenderedPrompt, normalize_text
from foveate.text import analysis
from foveate.text.format import plain_line
from foveate.text.summarize import split_sentences


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


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """A text that is present as a whole, or in part if its sentences in the prompt have every content word of the answer.

    Only sentences that are in the prompt word for word count. Without an answer the whole text must be there.
    """

    id: str
    text: str
    answer: str = ""
    evidence_type: str = "passage"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        normalized = prompt.normalized_text
        if _contains_text(normalized, self.text):
            return True
        needed = set(analysis.terms(self.answer))
        if not needed or not needed <= set(analysis.terms(self.text)):
            return False
        shown = [sentence for sentence in _passages(self.text) if _contains_text(normalized, sentence)]
        return needed <= {term for sentence in shown for term in analysis.terms(sentence)}


def _passages(text: str) -> list[str]:
    """Return the sentences of each line, without the marks of headings and lists."""
    return [sentence for line in text.splitlines() for sentence in split_sentences(plain_line(line))]


def turn_evidence(turns: Sequence[tuple[str, str]], answer: object = None) -> tuple[EvidenceText | PassageEvidence, ...]:
    """Return two pieces of evidence for each (id, text) of a turn: all of it, and a passage of it that has the answer."""
    answer_text = "" if answer is None else str(answer)
    whole = (EvidenceText(id, text) for id, text in turns)
    return (*whole, *(PassageEvidence(id, text, answer_text) for id, text in turns))


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
