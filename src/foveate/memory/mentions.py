"""Which entities a text names: runs of words in, entity records out.

Comes in: a text, and a look-up of names in the form in which they are kept (`Reader.named`, which decides between several
of one name). Goes out: the entities, in the order in which the text names them. A name is met whatever its case and
separators, by an alias, as a possessive (`Mira's`) and in the plural (`uploaders`); what is written wins over what it
could be short for, and a longer name over the names inside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from foveate.text import analysis
from foveate.types import Record

MAX_NAME_WORDS = 3
"""Names are looked up as runs of up to three words."""

SHORTEST_PLURAL = 5
"""Letters from which a final `s` may be a plural: shorter ones are mostly names of their own, such as `AWS` or `Ross`."""

Named = Callable[[Sequence[str]], Mapping[str, Record]]

_WORD = re.compile(r"[^\W_](?:[\w'+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)


def mentioned(text: str, named: Named) -> dict[str, Record]:
    """The entities that a text names: id -> record."""
    spoken = _WORD.findall(text)
    spans = dict(_spans(spoken))
    found = named(sorted({name for names in spans.values() for name in names}))
    if not found:
        return {}
    taken: dict[int, Record] = {}
    covered: set[int] = set()
    for (start, size), names in spans.items():  # longest first
        record = next((found[name] for name in names if name in found), None)
        if record is not None and not covered.issuperset(range(start, start + size)):
            covered.update(range(start, start + size))
            taken.setdefault(start, record)
    return {taken[start].id: taken[start] for start in sorted(taken)}


def names_in(text: str) -> list[str]:
    """Every name that a text may hold, in the form in which names are kept."""
    return sorted({name for _, names in _spans(_WORD.findall(text)) for name in names})


def name_of(record: Record) -> str:
    """The name under which an entity goes."""
    return str(record.data.get("name") or record.text)


def _spans(spoken: Sequence[str]) -> Iterator[tuple[tuple[int, int], tuple[str, ...]]]:
    """(first word, number of words) -> the names that it may be, the likeliest first; the longest spans first."""
    for size in range(min(MAX_NAME_WORDS, len(spoken)), 0, -1):
        for start in range(len(spoken) - size + 1):
            names = tuple(dict.fromkeys(name for name in _forms("".join(spoken[start : start + size])) if name))
            if names:
                yield (start, size), names


def _forms(run: str) -> Iterator[str]:
    """A run of words as it is written, without its possessive, and in the singular."""
    written = analysis.normalize_name(run)
    yield written
    if _POSSESSIVE.search(run):
        yield analysis.normalize_name(_POSSESSIVE.sub("", run))
    elif len(written) >= SHORTEST_PLURAL and written.endswith("s") and not written.endswith("ss"):
        yield written[:-1]
        if written.endswith("es"):
            yield written[:-2]
        if written.endswith("ies"):
            yield f"{written[:-3]}y"
