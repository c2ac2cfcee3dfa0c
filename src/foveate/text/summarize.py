"""A text at two shorter lengths: a summary of 50 to 100 tokens, and a micro of one line with about 20.

The default, `ExtractiveSummarizer`, selects whole sentences of the text and is deterministic. Anything with the same
`shorten` can take its place. It does not paraphrase or call a model, and knows nothing about kinds of records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from foveate.text import tokens
from foveate.text.format import LINE_MARKS, fits_width, one_line, plain_line, text_width, truncate_to_width
from foveate.text.markdown import fenced_blocks, split_code
from foveate.text.structured import is_structured, key_line, summarize_lines

SUMMARY_TOKENS, MIN_SUMMARY_TOKENS, MICRO_TOKENS = 100, 50, 20
"""004: a summary has 50 to 100 tokens, unless the text has fewer, and a micro about 20."""

TARGET_TOKENS, MAX_ATTEMPTS = 85, 4
"""Widths are estimates. If the counted tokens miss the range, sentences are selected again for another width."""

HEAD_CHARS, TAIL_CHARS = 24_000, 8_000
"""The part of a long text that is considered: both ends say the most, and the work must not grow with the rest."""

TERM_WEIGHT, FIRST_BONUS, LAST_BONUS, CUE_BONUS, TITLE_BONUS, LABEL_BONUS = 0.5, 0.3, 0.05, 0.4, 0.4, 0.8
"""A cue counts a little more than the first place, and two cues more than frequent terms. A label is `Outcome:`."""

QUESTION_PENALTY, GREETING_PENALTY, FRAGMENT_PENALTY, HEADING_PENALTY, METADATA_PENALTY = 0.4, 0.8, 0.25, 0.3, 0.5
"""A sentence with a score below zero only fills the first half of a summary."""

MAX_CUES = 2
"""More cues than this are a list of words, and no stronger statement."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The two shorter lengths of a text."""

    summary: str
    micro: str


class Summarizer(Protocol):
    """Anything that shortens a text ahead of time."""

    def shorten(self, text: str, title: str = "") -> Lengths:
        """Return a summary and a micro, both no longer than the text, and empty only for a blank text."""
        ...


class LLM(Summarizer, Protocol):
    """A language model that foveate asks ahead of time, for summaries; computing a context asks none."""


class ExtractiveSummarizer:
    """Selects the sentences of a text, or the lines of code and logs, that say the most."""

    def shorten(self, text: str, title: str = "") -> Lengths:
        """Return both lengths. A text that is short enough is returned as it is, the same object."""
        text = text.strip()
        is_short = _needs_no_summary(text)
        if is_short and fits_width(text, _MICRO_WIDTH):
            return Lengths(_drop_open_fence(text), truncate_to_width(_join_lines(text), _MICRO_WIDTH))
        ends = _head_and_tail(text)
        if is_structured(text):
            lines = [line.rstrip() for end in ends for line in end.splitlines() if line and not line.isspace()]
            summary = text if is_short else _fit_token_count(lambda width: summarize_lines(lines, width))
            return Lengths(_drop_open_fence(summary), _micro(key_line(lines)))
        sentences = _sentences(ends) or [text]
        scores = _form_scores(sentences, title)
        if is_short:
            return Lengths(_drop_open_fence(text), _micro(_best_sentence(sentences, scores)))
        scores = [form + terms for form, terms in zip(scores, _term_scores(sentences), strict=True)]
        summary = _fit_token_count(lambda width: _summarize_sentences(sentences, scores, width))
        return Lengths(_drop_open_fence(summary), _micro(_best_sentence(sentences, scores)))


# --- lengths ---------------------------------------------------------------------------------------------------------

# Widths are in quarters of a token, see `text_width`.
_SUMMARY_WIDTH, _MICRO_WIDTH, _FRAGMENT_WIDTH = SUMMARY_TOKENS * 4, MICRO_TOKENS * 4, 20

_FENCE = re.compile(r"`{3,}[\w+-]*")


def _needs_no_summary(text: str) -> bool:
    if text.isascii() and len(text) <= SUMMARY_TOKENS:
        return True
    return len(text) <= 2 * _SUMMARY_WIDTH and tokens.count(text) <= SUMMARY_TOKENS


def _fit_token_count(shorten: Callable[[int], str]) -> str:
    """Return `shorten(width)` for a width at which the result has the tokens of a summary, or as many as it can have."""
    width, best, best_count, previous, attempts = _SUMMARY_WIDTH, "", 0, "", 0
    while not best or (best_count < MIN_SUMMARY_TOKENS and attempts < MAX_ATTEMPTS):
        summary = shorten(width)
        count = tokens.count(summary)
        if summary == previous:
            break
        if best_count < count <= SUMMARY_TOKENS:
            best, best_count = summary, count
        used = width if count < MIN_SUMMARY_TOKENS else min(width, text_width(summary))  # too long must become shorter
        width, previous, attempts = used * TARGET_TOKENS // max(1, count), summary, attempts + 1
    return best


def _head_and_tail(text: str) -> list[str]:
    return [text] if len(text) <= HEAD_CHARS + TAIL_CHARS else [text[:HEAD_CHARS], text[-TAIL_CHARS:]]


def _micro(text: str) -> str:
    return truncate_to_width(plain_line(text), _MICRO_WIDTH)


def _join_lines(text: str) -> str:
    """Join the lines of a short text without their marks, with `; ` unless a sentence ends or continues there."""
    if "\n" not in text:
        return plain_line(text)
    joined = ""
    for line in text.splitlines():
        if not line.strip() or _FENCE.fullmatch(line.strip()):
            continue
        is_item = LINE_MARKS.match(line.lstrip()) is not None
        line = plain_line(line)
        continues = not is_item and line[0].islower()
        joined += ("" if not joined else " " if continues or joined[-1] in ".!?:;,。！？" else "; ") + line
    joined = plain_line(joined or text)
    return joined if len(joined) <= len(text) else plain_line(text)


def _drop_open_fence(summary: str) -> str:
    """Return the summary without a fence that opens a code block and has no closing one."""
    if "```" not in summary:
        return summary
    lines = summary.split("\n")
    blocks = fenced_blocks(lines)
    if not blocks or blocks[-1].is_closed:
        return summary
    lines[blocks[-1].start] = _FENCE.sub("", lines[blocks[-1].start])
    return "\n".join(lines).strip() or summary


# --- sentences -------------------------------------------------------------------------------------------------------

# A full stop, then: for `.!?…` closing quotes and a break that no lower-case word follows (not v1.2, file.py). Without the
# break it matches, too, and sets no group: a search that began again inside of `.....` would read the rest each time.
_STOP = re.compile(
    r"[.!?…\n。！？](?:(?<=[.!?…])[.!?…\"')\]*`”’]*+(?:(?=\s+[^a-z\s]|\s*\Z)()|)|(?<=\n)()|(?<=[。！？])[。！？”’」』]*+())"
)
_ITEM = re.compile(r"[^\S\n]*+(?:[-*+•>#|]|\d{1,3}[.)]\s|\n|\Z)")
_WRAPPED_CHARS = 50  # a shorter line ends where its author ended it, a longer one at the margin


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences as they are. Joined together, they are the text without the blanks at its end."""
    sentences: list[str] = []
    start = 0
    for match in _STOP.finditer(text):
        stop, end = match.span()
        mark = text[stop]
        if (
            match.lastindex is None
            or (mark == "." and _is_abbreviation(text, start, stop))
            or (mark == "\n" and not _line_break_ends_sentence(text, stop))
        ):
            continue
        if not (sentence := text[start:end]).isspace():
            sentences.append(sentence)
            start = end
    if (rest := text[start:]) and not rest.isspace():
        sentences.append(rest)
    return sentences


def _sentences(ends: list[str]) -> list[str]:
    """Split both ends into sentences without code, and drop the two that the cut between the ends goes through."""
    prose = ["\n\n".join(part for part, block in split_code(end) if not block) if "```" in end else end for end in ends]
    if len(prose) == 1:
        return split_sentences(prose[0])
    head, tail = map(split_sentences, prose)
    return (head[:-1] or head) + (tail[1:] or tail)


def _is_abbreviation(text: str, start: int, stop: int) -> bool:
    """Return whether the period at `stop` belongs to a word: `Dr.`, the initial in `J. Smith`, `1.` before an item."""
    words = text[max(start, stop - _MAX_ABBREVIATION_CHARS - 1) : stop].split()
    word = words[-1].lstrip("(") if words else ""
    if word.isdigit():
        line = text.rfind("\n", start, stop) + 1 or start
        return (not line or text[line - 1] == "\n") and text[line:stop].strip() == word
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _line_break_ends_sentence(text: str, stop: int) -> bool:
    if _ITEM.match(text, stop + 1):
        return True
    after = text[stop + 1]
    if after.islower():
        return False
    return stop - text.rfind("\n", 0, stop) <= _WRAPPED_CHARS or not (after.isalnum() or after in "`\"'(|:")


def _summarize_sentences(sentences: list[str], scores: list[float], width: int) -> str:
    """Return the best sentences that fit, in order. If they fill less than half of the room, add a part of the next."""
    selected: dict[int, str] = {}
    room = width
    ranked = sorted(range(len(sentences)), key=lambda n: (-scores[n], n))
    for n in ranked:
        if scores[n] < 0 and room < width // 2:
            break
        sentence = one_line(sentences[n])
        needed = text_width(sentence) + 1
        if needed <= room:
            selected[n] = sentence
            room -= needed
    next_best = next((n for n in ranked if n not in selected), None)
    if next_best is not None and room > width // 2:
        selected[next_best] = truncate_to_width(one_line(sentences[next_best]), room - 1)
    return "".join(_space_before(sentences, n) + selected[n] for n in sorted(selected)).strip()


def _space_before(sentences: list[str], n: int) -> str:
    """Return the line break, space or nothing that separates a sentence from the one before it."""
    sentence = sentences[n]
    start = sentence.lstrip()
    if "\n" in sentence[: len(sentence) - len(start)] or (n and sentences[n - 1][-1] == "\n"):
        return "\n"
    if LINE_MARKS.match(start) or start[0] == "|":
        return "\n"
    return " " if len(start) < len(sentence) or start[0].isascii() else ""


def _best_sentence(sentences: list[str], scores: list[float]) -> str:
    best = sentences[scores.index(max(scores))]
    if not best.lstrip().startswith("|"):
        return best
    rows = [row for row in map(str.strip, sentences) if row[0] == "|" and any(map(str.isalnum, row))]
    header_and_first = "; ".join(", ".join(cell.strip() for cell in row.strip("|").split("|")) for row in rows[:2])
    return header_and_first or sentences[0]


# --- scores ----------------------------------------------------------------------------------------------------------


def sentence_scores(sentences: list[str]) -> list[float]:
    """Score each sentence by its place, its form, its cues and its terms."""
    forms, terms = _form_scores(sentences, ""), _term_scores(sentences)
    return [form + term for form, term in zip(forms, terms, strict=True)]


def _word_forms(words: str, ends: str) -> frozenset[str]:
    """Return each word in its usual cases and with each of the ends, to be compared with text that is split at spaces."""
    cased = {form for word in words.split() for form in (word, word.capitalize(), word.upper())}
    return frozenset(cased | {word + end for word in cased for end in ends})


_ABBREVIATIONS = _word_forms("e.g i.e dr mr mrs ms prof st vs cf no fig eq sec approx incl jr sr dept al ca resp u.s", "")
_MAX_ABBREVIATION_CHARS = max(map(len, _ABBREVIATIONS))
_CUES = _word_forms(
    "because therefore decided decision chose chosen agreed must never always don't avoid prefer prefers error "
    "errors failed fails failure bug fixed fixes cause caused causes important warning outcome reason reasons "
    "-> → =>",
    ",.:;!",
)
_CUES_UNSPACED = re.compile("因为|所以|决定|必须|错误|修复|不要|重要|ため|決定|必ず|エラー|修正")
_GREETINGS = _word_forms("hi hello hey thanks thank bye goodbye wow woah ok okay sure yeah yep yes cheers dear", ",.!")
_GREETINGS_UNSPACED = re.compile("你好|您好|大家好|谢谢|再见|こんにちは|ありがとう|おはよう|안녕|감사")
_STOPWORDS = _word_forms(
    "the and for are but not you all any can had her was one our out has him his how its may new now old see two way "
    "who did get let put say she too use that with have this will your from they know want been good much some time "
    "very when come here just like long make many more only over such take than them well were what also into then "
    "there these those their would could should about which while where after before being other because",
    "",
)
_METADATA_LABELS = _word_forms("attendees: participants: present: date: time: location: place: from: to: cc:", "")
_LABEL = re.compile(
    r"\s*(?:[-*+>] )?\**(?:outcome|decisions?|results?|root cause|cause|fix|conclusion|resolution|solution)"
    r"(?::\**|\**:)[^\S\n]*+[^\s*]",
    re.IGNORECASE,
)
_TERM = re.compile(r"[^\W_]{3,}")


def _form_scores(sentences: list[str], title: str) -> list[float]:
    """Score each sentence by its place, its form, its cues and the words that it shares with the title."""
    scores = [_form_score(sentence) + FIRST_BONUS / place for place, sentence in enumerate(sentences, 1)]
    scores[-1] += LAST_BONUS
    title_terms = set(_TERM.findall(title.lower())) - _STOPWORDS if title else set()
    if not title_terms:
        return scores
    shared = [len(title_terms.intersection(_TERM.findall(sentence.lower()))) for sentence in sentences]
    return [score + TITLE_BONUS * count / len(title_terms) for score, count in zip(scores, shared, strict=True)]


def _form_score(sentence: str) -> float:
    words = sentence.split()
    score = 0.0 if sentence.isascii() else _unspaced_score(sentence)
    if not _CUES.isdisjoint(words):
        score += CUE_BONUS * min(len(_CUES.intersection(words)), MAX_CUES)
    if words[0] in _GREETINGS:
        score -= GREETING_PENALTY
    elif words[0] in _METADATA_LABELS:
        score -= METADATA_PENALTY
    elif ":" in sentence and _LABEL.match(sentence):
        score += LABEL_BONUS
    if (end := words[-1][-1]) in "?？":
        score -= QUESTION_PENALTY
    elif end == ":" or words[0][0] == "#":
        score -= HEADING_PENALTY
    if len(sentence) <= _FRAGMENT_WIDTH and fits_width(sentence, _FRAGMENT_WIDTH):
        score -= FRAGMENT_PENALTY
    return score


def _unspaced_score(sentence: str) -> float:
    """Score the cues and greetings of scripts that put no spaces between words."""
    cues = min(len(_CUES_UNSPACED.findall(sentence)), MAX_CUES)
    return CUE_BONUS * cues - (GREETING_PENALTY if _GREETINGS_UNSPACED.match(sentence.lstrip()) else 0.0)


def _term_scores(sentences: list[str]) -> list[float]:
    """Score each sentence by the words that the text keeps using. The best sentence has TERM_WEIGHT."""
    terms = [set(_TERM.findall(sentence.lower())) - _STOPWORDS for sentence in sentences]
    counts = Counter(term for sentence_terms in terms for term in sentence_terms)
    # The 4 keeps a fragment with one frequent term from beating a sentence with several.
    scores = [sum(counts[term] - 1 for term in sentence_terms) / (len(sentence_terms) + 4) for sentence_terms in terms]
    best = max(scores) or 1.0
    return [TERM_WEIGHT * score / best for score in scores]
