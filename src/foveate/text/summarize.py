"""A text at two shorter lengths: a summary of 50 to 100 tokens and a micro of one line, about 20 tokens.

Comes in: a record's text, and its title where it has one. Goes out: `Lengths`. The default, `Extractive`, chooses whole
sentences of the text itself and is deterministic; anything with the same `shorten` can take its place.

Widths are estimated while it chooses; the tokens of a summary are then counted, and where the estimate was wrong, it
chooses again for another width.

It deliberately does not paraphrase, call a model or know about kinds of records. Of a long text it considers only the
first and the last characters (HEAD_CHARS, TAIL_CHARS).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from foveate.text import tokens

SUMMARY_TOKENS = 100
LEAST_TOKENS = 50
MICRO_TOKENS = 20
"""004: a summary has 50 to 100 tokens, unless the text has fewer; a micro about 20."""

AIMED_AT, TRIES = 85, 4
"""Tokens that a summary is chosen anew for, and how often: sentences are whole, so that it seldom meets them."""

HEAD_CHARS = 24_000
TAIL_CHARS = 8_000
"""What is considered of a long text, because both ends say the most and the work must not grow with the rest."""

STRUCTURED_SHARE = 0.5
"""From this share of code-like lines on, a text is treated as lines and not as sentences."""

TERM_WEIGHT, FIRST_BONUS, LAST_BONUS, CUE_BONUS, TITLE_BONUS = 0.5, 0.3, 0.05, 0.4, 0.4
"""What speaks for a sentence. A cue weighs a little more than standing first, and two cues more than frequent terms."""

MAX_CUES = 2
"""More cues than this are a list of words, not a stronger statement."""

QUESTION_PENALTY, GREETING_PENALTY, FRAGMENT_PENALTY, HEADING_PENALTY = 0.4, 0.8, 0.25, 0.3
"""What speaks against it; below zero, a sentence is only taken to fill half of the room."""

LABEL_BONUS, ASIDE_PENALTY = 0.8, 0.5
"""What a note's own label says: `Outcome:` names the matter, `Attendees:` does not."""

FRAGMENT_TOKENS = 5
"""Shorter sentences ("Great idea!") rarely carry the matter."""

CLAUSE_SHARE, WORD_SHARE = 0.6, 0.4
"""A cut goes to the last clause, else the last word, unless that would throw away more than the rest of the room."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The two shorter lengths of a text."""

    summary: str
    micro: str


class Summarizer(Protocol):
    """Anything that shortens a text ahead of time."""

    def shorten(self, text: str, title: str = "") -> Lengths:
        """A summary and a micro, neither longer than the text, neither empty unless the text is blank."""
        ...


class Extractive:
    """Chooses the sentences (or lines, of code and logs) that say the most."""

    def shorten(self, text: str, title: str = "") -> Lengths:
        """Both lengths; a text that is short enough is its own, the same object."""
        text = text.strip()
        is_short = _is_short(text)
        if is_short and _fits(text, _MICRO_ROOM):
            return Lengths(_balanced(text), _clip(_joined(text), _MICRO_ROOM))
        ends = _ends(text)
        if is_structured(text):
            lines = _lines(ends)
            summary = text if is_short else _counted(lambda room: _summary_of_lines(lines, room))
            return Lengths(_balanced(summary), _micro(_telling(lines)))
        sentences = _sentences(ends) or [text]
        if is_short:
            return Lengths(_balanced(text), _micro(_best(sentences, _scores(sentences, title))))
        scores = weights(sentences, title)
        summary = _counted(lambda room: _summary(sentences, scores, room))
        return Lengths(_balanced(summary), _micro(_best(sentences, scores)))


def weights(sentences: list[str], title: str = "") -> list[float]:
    """What the place, the form, the cues and the terms of each sentence say for it."""
    return [own + terms for own, terms in zip(_scores(sentences, title), _term_scores(sentences), strict=True)]


# --- counts ---------------------------------------------------------------------------------------------------------


def _is_short(text: str) -> bool:
    """Whether a text has no more tokens than a summary may have. What is far too long is not counted."""
    if text.isascii() and len(text) <= SUMMARY_TOKENS:
        return True
    return len(text) <= 2 * _SUMMARY_ROOM and tokens.count(text) <= SUMMARY_TOKENS


def _counted(shortened: Callable[[int], str]) -> str:
    """What `shortened` gives for a width at which it has the tokens of a summary, or fewer where it has no more to give."""
    room, best, most, before, tries = _SUMMARY_ROOM, "", 0, "", 0
    while not best or (most < LEAST_TOKENS and tries < TRIES):
        made = shortened(room)
        count = tokens.count(made)
        if made == before:
            break
        if most < count <= SUMMARY_TOKENS:
            best, most = made, count
        used = room if count < LEAST_TOKENS else min(room, _width(made))  # one that is too long must come out shorter
        room, before, tries = used * AIMED_AT // max(1, count), made, tries + 1
    return best


# --- width ---------------------------------------------------------------------------------------------------------

# Widths are in quarters of a token: an ASCII or Latin character is one, any other (CJK, Cyrillic, emoji, `…`) is four.
_SUMMARY_ROOM = SUMMARY_TOKENS * 4
_MICRO_ROOM = MICRO_TOKENS * 4
_FRAGMENT_ROOM = FRAGMENT_TOKENS * 4
_WIDE = re.compile(r"[^\x00-\u024f]")
_ELLIPSIS = "…"
_ELLIPSIS_WIDTH = 4


def _width(text: str) -> int:
    return len(text) if text.isascii() else len(text) + 3 * len(_WIDE.findall(text))


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and (text.isascii() or _width(text) <= room)


def _prefix(text: str, room: int) -> str:
    """The longest beginning that fits."""
    text = text[:room]
    while not text.isascii() and (over := _width(text) - room) > 0:
        text = text[: len(text) - (over + 3) // 4]
    return text


_CLAUSE_END = re.compile(r"[,;:)\]—–](?=\s)|[，、；：。！？]|[.!?](?=\s)")


def _clip(text: str, room: int) -> str:
    """The text, or its beginning up to the end of a clause or word, with `…`."""
    if _fits(text, room):
        return text
    room -= _ELLIPSIS_WIDTH
    head = _prefix(text, room)
    ends = [match.start() for match in _CLAUSE_END.finditer(head)]
    if ends and ends[-1] >= CLAUSE_SHARE * len(head):
        head = head[: ends[-1]]
    elif not text[len(head)].isspace() and (space := head.rfind(" ")) >= WORD_SHARE * len(head):
        head = head[:space]
    return (head.rstrip(" ,;:-—–") or head) + _ELLIPSIS


# --- cleaning ------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)]) )+")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


_FENCE_MARK = re.compile(r"`{3,}")
_FENCE_LINE = re.compile(r"`{3,}[\w+-]*")


def _one_line(text: str) -> str:
    """Without line breaks, repeated spaces, fences and the marks of a heading, a bullet or a quote."""
    line = " ".join((_FENCE_MARK.sub(" ", text) if "```" in text else text).split())
    marks = _MARKS.match(line)
    line = line[marks.end() :] if marks else line
    return text if line == text or not line else line


def _joined(text: str) -> str:
    """The lines of a short text as one, each without its marks: `; ` between them where no sentence goes on or ends."""
    if "\n" not in text:
        return _one_line(text)
    lines = [line for line in text.splitlines() if line and not line.isspace()]
    joined = ""
    for line in lines:
        if _FENCE_LINE.fullmatch(line.strip()):
            continue
        is_item = _MARKS.match(line.lstrip()) is not None
        line = _one_line(line)
        goes_on = not is_item and line[0].islower()
        joined += ("" if not joined else " " if goes_on or joined[-1] in ".!?:;,。！？" else "; ") + line
    joined = _one_line(joined or text)
    return joined if len(joined) <= len(text) else _one_line(text)


def _balanced(summary: str) -> str:
    """Without the last fence where it has no partner."""
    if "```" not in summary or len(fences := list(_FENCE_LINE.finditer(summary))) % 2 == 0:
        return summary
    start, end = fences[-1].span()
    return (summary[:start] + summary[end:]).strip() or summary


def _micro(text: str) -> str:
    return _clip(_one_line(text), _MICRO_ROOM)


def _ends(text: str) -> list[str]:
    """The text, or the beginning and the end of a long one."""
    return [text] if len(text) <= HEAD_CHARS + TAIL_CHARS else [text[:HEAD_CHARS], text[-TAIL_CHARS:]]


# --- sentences -----------------------------------------------------------------------------------------------------

# A mark of the end, then: for `.!?…` closing quotes and a break that no lower-case word follows (not v1.2, file.py).
_STOP = re.compile(
    r"[.!?…\n。！？](?:(?<=[.!?…])[.!?…\"')\]*`”’]*+(?=\s+[^a-z\s]|\s*\Z)|(?<=\n)|(?<=[。！？])[。！？”’」』]*+)"
)
_ITEM = re.compile(r"[^\S\n]*+(?:[-*+•>#|]|\d{1,3}[.)]\s|\n|\Z)")
_WRAPPED_CHARS = 50  # a shorter line ends where its author ended it, a longer one where the margin was


def _sentences(ends: list[str]) -> list[str]:
    """The sentences of both ends as they stand, without those that the cut between the ends goes through."""
    if len(ends) == 1:
        return split(_unfenced(ends[0]))
    head, tail = split(_unfenced(ends[0])), split(_unfenced(ends[1]))
    return (head[:-1] or head) + (tail[1:] or tail)


def _unfenced(text: str) -> str:
    return _FENCE.sub("\n\n", text) if "```" in text else text


def split(text: str) -> list[str]:
    """The sentences of a text as they stand: put together they are the text, but for blanks at its end."""
    sentences: list[str] = []
    start = 0
    for match in _STOP.finditer(text):
        stop, end = match.span()
        mark = text[stop]
        if (mark == "." and _abbreviates(text, start, stop)) or (mark == "\n" and not _ends_line(text, stop)):
            continue
        if not (sentence := text[start:end]).isspace():
            sentences.append(sentence)
            start = end
    if (rest := text[start:]) and not rest.isspace():
        sentences.append(rest)
    return sentences


def _abbreviates(text: str, start: int, stop: int) -> bool:
    """Whether the period at `stop` belongs to a word: `Dr.`, the initial of `J. Smith`, `1.` before an item."""
    words = text[max(start, stop - _LONGEST_ABBREVIATION - 1) : stop].split()
    word = words[-1].lstrip("(") if words else ""
    if word.isdigit():
        return text[text.rfind("\n", 0, stop) + 1 : stop].strip() == word
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _ends_line(text: str, stop: int) -> bool:
    """Whether a line break ends a sentence: not where a long line goes on with a word."""
    if _ITEM.match(text, stop + 1):
        return True
    after = text[stop + 1]
    if after.islower():
        return False
    return stop - text.rfind("\n", 0, stop) <= _WRAPPED_CHARS or not (after.isalnum() or after in "`\"'(|:")


# --- scores --------------------------------------------------------------------------------------------------------


def _forms(words: str, ends: str) -> frozenset[str]:
    """Each word in its usual cases and with each of the ends, so that split text can be compared as it stands."""
    cased = {form for word in words.split() for form in (word, word.capitalize(), word.upper())}
    return frozenset(cased | {word + end for word in cased for end in ends})


_ABBREVIATIONS = _forms("e.g i.e dr mr mrs ms prof st vs cf no fig eq sec approx incl jr sr dept al ca resp u.s", "")
_LONGEST_ABBREVIATION = max(map(len, _ABBREVIATIONS))
_CUES = _forms(
    "because therefore decided decision chose chosen agreed must never always don't avoid prefer prefers error "
    "errors failed fails failure bug fixed fixes cause caused causes important warning outcome reason reasons "
    "-> → =>",
    ",.:;!",
)
_CUES_UNSPACED = re.compile("因为|所以|决定|必须|错误|修复|不要|重要|ため|決定|必ず|エラー|修正")
_GREETINGS = _forms("hi hello hey thanks thank bye goodbye wow woah ok okay sure yeah yep yes cheers dear", ",.!")
_GREETINGS_UNSPACED = re.compile("你好|您好|大家好|谢谢|再见|こんにちは|ありがとう|おはよう|안녕|감사")
_STOPWORDS = _forms(
    "the and for are but not you all any can had her was one our out has him his how its may new now old see two way "
    "who did get let put say she too use that with have this will your from they know want been good much some time "
    "very when come here just like long make many more only over such take than them well were what also into then "
    "there these those their would could should about which while where after before being other because",
    "",
)
_ASIDES = _forms("attendees: participants: present: date: time: location: place: from: to: cc:", "")
_LABEL = re.compile(
    r"\s*(?:[-*+>] )?\**(?:outcome|decisions?|results?|root cause|cause|fix|conclusion|resolution|solution)"
    r"(?::\**|\**:)[^\S\n]*+[^\s*]",
    re.IGNORECASE,
)
_TERM = re.compile(r"[^\W_]{3,}")


def _scores(sentences: list[str], title: str) -> list[float]:
    """What the place, the form and the cues of each sentence say for it."""
    scores = [_form_score(sentence) + FIRST_BONUS / place for place, sentence in enumerate(sentences, 1)]
    scores[-1] += LAST_BONUS
    if wanted := set(_TERM.findall(title.lower())) - _STOPWORDS if title else set():
        bonus = TITLE_BONUS / len(wanted)
        shared = [len(wanted.intersection(_TERM.findall(sentence.lower()))) for sentence in sentences]
        scores = [score + bonus * count for score, count in zip(scores, shared, strict=True)]
    return scores


def _form_score(sentence: str) -> float:
    words = sentence.split()
    score = 0.0 if sentence.isascii() else _unspaced_score(sentence)
    if not _CUES.isdisjoint(words):
        score += CUE_BONUS * min(len(_CUES.intersection(words)), MAX_CUES)
    if words[0] in _GREETINGS:
        score -= GREETING_PENALTY
    elif words[0] in _ASIDES:
        score -= ASIDE_PENALTY
    elif ":" in sentence and _LABEL.match(sentence):
        score += LABEL_BONUS
    if (end := words[-1][-1]) in "?？":
        score -= QUESTION_PENALTY
    elif end == ":" or words[0][0] == "#":
        score -= HEADING_PENALTY
    if len(sentence) <= _FRAGMENT_ROOM and _fits(sentence, _FRAGMENT_ROOM):
        score -= FRAGMENT_PENALTY
    return score


def _unspaced_score(sentence: str) -> float:
    """The cues and greetings of scripts that do not put spaces between words."""
    cues = min(len(_CUES_UNSPACED.findall(sentence)), MAX_CUES)
    return CUE_BONUS * cues - (GREETING_PENALTY if _GREETINGS_UNSPACED.match(sentence.lstrip()) else 0.0)


def _term_scores(sentences: list[str]) -> list[float]:
    """How much of what the text keeps talking about is in each sentence; the best has TERM_WEIGHT."""
    terms = [set(_TERM.findall(sentence.lower())) - _STOPWORDS for sentence in sentences]
    counts = Counter(term for found in terms for term in found)
    # The 4 keeps a fragment that holds one frequent term from beating a sentence that holds several.
    scores = [sum(counts[term] - 1 for term in found) / (len(found) + 4) for found in terms]
    best = max(scores) or 1.0
    return [TERM_WEIGHT * score / best for score in scores]


def _best(sentences: list[str], scores: list[float]) -> str:
    best = sentences[scores.index(max(scores))]
    return _table_start(sentences) if best.lstrip().startswith("|") else best


def _table_start(sentences: list[str]) -> str:
    """The header and the first row of a table."""
    rows = [row for row in map(str.strip, sentences) if row[0] == "|" and any(map(str.isalnum, row))]
    return "; ".join(", ".join(cell.strip() for cell in row.strip("|").split("|")) for row in rows[:2]) or sentences[0]


def _summary(sentences: list[str], scores: list[float], width: int) -> str:
    """The best sentences that fit, in their own order; where they fill less than half the room, a part of the next."""
    chosen: dict[int, str] = {}
    room = width
    ranked = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))
    for index in ranked:
        if scores[index] < 0 and room < width // 2:
            break
        sentence = " ".join(sentences[index].split())
        needed = _width(sentence) + 1
        if needed <= room:
            chosen[index] = sentence
            room -= needed
    left = next((index for index in ranked if index not in chosen), None)
    if left is not None and room > width // 2:
        chosen[left] = _clip(" ".join(sentences[left].split()), room - 1)
    return "".join(_gap(sentences, index) + chosen[index] for index in sorted(chosen)).strip()


def _gap(sentences: list[str], index: int) -> str:
    """What stands before a sentence: a line break, which can be at the end of the one before; a space; or nothing."""
    sentence = sentences[index]
    start = sentence.lstrip()
    if "\n" in sentence[: len(sentence) - len(start)] or (index and sentences[index - 1][-1] == "\n"):
        return "\n"
    if _MARKS.match(start) or start[0] == "|":
        return "\n"
    return " " if len(start) < len(sentence) or start[0].isascii() else ""


# --- lines: code, data, logs, stack traces -------------------------------------------------------------------------

_CODE_LINE = re.compile(
    r"\s*(?:[}\])]|[\[{(]\s*$|#!|//|/\*|@@ |</?\w[^>]*>|\"[^\"]*\"\s*:"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d|\[?\d\d:\d\d:\d\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b"
    r"|Traceback \(|File \"|at [\w$.<>]+ ?\(|Caused by: |[\w.]+(?:Error|Exception)\b(?::|$)"
    r"|(?:import|from|package|using|use|#include) [\w.:<\"/{*]+(?: import .*)?;?\s*$"
    r"|(?:async |pub |export |public |private |static )*(?:def|class|func|fn|function|struct|enum|interface) \w"
    r"|(?:return|raise|yield|assert|const|let|var)\b|[\w.\[\]\"']+ (?:=|:=|\+=|-=) \S|[\w.]+\(.*\)\s*$)"
    r"|.*[{};]\s*$|(?: {4}|\t)\s*[^\s*\d-]"
)
_ERROR_LINE = re.compile(
    r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::\s|$)|Caused by: |Exception in thread"
    r"|.*\b(?:ERROR|FATAL|CRITICAL|FAILED|panic:|error:|fatal:)"
)
_TRACE_LINE = re.compile(r"Traceback \(|\s+at [\w$.<>]+ ?\(")
_SCAFFOLD = re.compile(r"\s*(?:```|#!|import |from \S+ import|package |using |#include|[\"'/*]*$|(?:\W|\d)*$)")
_SYMBOL = re.compile(r"[][{}()<>;=\":/\\_@#$|]")
_SYMBOLS_SAMPLED, _SYMBOL_SHARE = 400, 0.03  # plain prose has one such character in a hundred, a log one in twenty
_LINES_SAMPLED = 60
_LINE_SHARE = 3  # of the room, so that one long line leaves some for the others
_ERRORS_KEPT = 2
_GAP_WIDTH = _ELLIPSIS_WIDTH + 1


def is_structured(text: str) -> bool:
    """Whether most lines are of code, data, a log or a stack trace."""
    if (text[0] in "{[" and text[-1] in "}]") or text.startswith(("diff --git ", "--- a/")):
        return True
    if "\n" not in text:
        return False
    text = text[:HEAD_CHARS]
    if ":\n" in text and _is_yaml(text):
        return True
    if "```" in text:
        text = _FENCE.sub("", text).strip()
        if _fits(text, _FRAGMENT_ROOM):
            return True
    sample = text[:_SYMBOLS_SAMPLED]
    if len(_SYMBOL.findall(sample)) < _SYMBOL_SHARE * len(sample):
        return False
    lines = [line for line in text.splitlines()[:_LINES_SAMPLED] if line and not line.isspace()]
    code = sum(1 for line in lines if _SYMBOL.search(line) and _CODE_LINE.match(line))
    return code >= 2 and code >= STRUCTURED_SHARE * len(lines)


_YAML_LINE = re.compile(r"\s*(?:- )?[\w./-]+:(?:\s+\S.{0,60})?$|\s*- \S+$|\s*#|---$")
_YAML_NEST = re.compile(r"^\s*[\w.-]+:\n(?: +[\w.-]+:|\s*- )", re.MULTILINE)


def _is_yaml(text: str) -> bool:
    if not _YAML_NEST.search(text, 0, 4 * _SYMBOLS_SAMPLED):
        return False
    lines = [line for line in text.splitlines()[:_LINES_SAMPLED] if line and not line.isspace()]
    return len(lines) > 2 and all(map(_YAML_LINE.match, lines))


def _lines(ends: list[str]) -> list[str]:
    return [line.rstrip() for end in ends for line in end.splitlines() if line and not line.isspace()]


def _telling_line(lines: list[str]) -> str:
    """The error of a trace or a log, else the first line that is more than scaffolding."""
    errors = [line for line in lines if _ERROR_LINE.match(line)]
    if any(_TRACE_LINE.match(line) for line in lines):
        return errors[-1] if errors else lines[-1]
    return errors[0] if errors else next((line for line in lines if not _SCAFFOLD.match(line)), lines[0])


_JSON_VALUE = re.compile(r'"(message|error|title|name|detail|summary|description)"\s*:\s*"([^"\\]{3,})')
_JSON_ORDER = ("message", "error", "detail", "title", "name", "summary", "description")
_CLASS_LINE = re.compile(r"(?:@\w+\s+)?(?:(?:export|public|abstract|final|pub) )*(?:class|struct|interface|enum|trait) \w+")
_MEMBER = re.compile(r"\s+(?:async )?(?:def|fn|func|pub fn) ([A-Za-z]\w*)")
_YAML_TELLING = re.compile(r"\s*(?:kind|name|title|image|description): *\S")


def _telling(lines: list[str]) -> str:
    """The telling line, or what says more than it: of a diff, of JSON, of YAML, of a class, of a line too short."""
    first = lines[0].lstrip()
    if first.startswith(("diff --git ", "--- a/")):
        return _told_diff(lines)
    if first[0] in "{[" and lines[-1][-1] in "}]":
        return _told_json("\n".join(lines))
    line = _telling_line(lines)
    if _ERROR_LINE.match(line):
        return line
    after = lines[lines.index(line) + 1 :]
    if named := _CLASS_LINE.match(line):
        return f"{named[0]}: {told}" if (told := _told_class(after)) else line
    if _YAML_LINE.match(line) and all(map(_YAML_LINE.match, lines[:_LINES_SAMPLED])):
        telling = [other for other in lines if _YAML_TELLING.match(other)]
        return "; ".join(dict.fromkeys(map(_one_line, telling[:2] if len(telling) > 1 else lines[:2])))
    if _fits(line, _FRAGMENT_ROOM) and (following := _next_telling(after)):
        return f"{_one_line(line)}; {_one_line(following)}"
    return line


def _told_diff(lines: list[str]) -> str:
    names = [line[4:].strip() for line in lines if line.startswith(("--- ", "+++ "))][:2]
    name = next((name for name in names if name != "/dev/null"), "")
    changed = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip()]
    change = next((line for line in changed if line[0] == "+"), changed[0] if changed else "")
    return f"diff {name}: {change[0]}{change[1:].strip()}" if name and change and len(names) > 1 else lines[0]


def _told_json(text: str) -> str:
    found: dict[str, str] = {}
    for match in _JSON_VALUE.finditer(text):
        found.setdefault(match[1], match[2])
    key = next((key for key in _JSON_ORDER if found.get(key, "").strip()), None)
    return f"{key}: {found[key]}" if key else text


def _told_class(body: list[str]) -> str:
    """A docstring's first line, else the names of the methods, else the next line."""
    if body and body[0].lstrip().startswith(('"""', "'''")) and (doc := body[0].strip().strip("\"'").strip()):
        return doc
    names = [match[1] for line in body if (match := _MEMBER.match(line))]
    return ", ".join(names) or _one_line(_next_telling(body))


def _next_telling(lines: list[str]) -> str:
    return next((line for line in lines if not _SCAFFOLD.match(line)), "")


def _summary_of_lines(lines: list[str], width: int) -> str:
    """The first and the last lines and the last errors, with `…` where lines are left out."""
    if len(lines) == 1:
        return _clip(lines[0].strip(), width)
    errors = [index for index, line in enumerate(lines) if _ERROR_LINE.match(line)][-_ERRORS_KEPT:]
    room = width - _GAP_WIDTH * (len(errors) + 1)
    chosen: dict[int, str] = {}
    for index in (*errors, *_inwards(len(lines))):
        line = _clip(lines[index], width // _LINE_SHARE)
        room -= 0 if index in chosen else _width(line) + 1
        if room < 0:
            break
        chosen[index] = line
    return _with_gaps(chosen)


def _inwards(count: int) -> list[int]:
    """0, the last, 1, the last but one, ..."""
    return [index // 2 if index % 2 == 0 else count - 1 - index // 2 for index in range(count)]


def _with_gaps(chosen: dict[int, str]) -> str:
    parts: list[str] = []
    previous = -1
    for index in sorted(chosen):
        parts += [_ELLIPSIS] if index > previous + 1 else []
        parts.append(chosen[index])
        previous = index
    return "\n".join(parts).strip()
