"""Words that stand for one another: who asks for kids also means children, and who asks for pets also means a dog.

Comes in: a question. Goes out: other terms to look for, each with the asked one that it stands for and what it counts beside
others. The tables are readable and in general English: `synonyms.txt` has words that say nearly the same. For talks there
are also `associations.txt`, what comes along with common words, and `hyponyms.txt`, what is of a kind. A store's own names
and aliases are the work of `signals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from foveate.text import analysis
from foveate.types import Meant

MOST_ASKED = 24
"""A question with more terms than this describes itself: it is a task or a report, and needs no other words."""

MOST_OTHERS = 500
"""Once a question has so many other words, no further kinds are looked for: each costs a look into the index."""

TABLES = {
    "synonyms.txt": Meant("", 1.0),
    "associations.txt": Meant("", 1.0, loose=True),
    "hyponyms.txt": Meant("", 0.5, loose=True),
}
"""What a word of each table counts; what stands in one is not looked for in the next."""


def related(question: str) -> dict[str, Meant]:
    """Terms beside those asked for. Parts of a name such as `ChromaDB` or `user_id` stand for nothing but that name."""
    asked = dict.fromkeys(analysis.terms(question))
    found: dict[str, Meant] = {}
    if len(asked) > MOST_ASKED:
        return found
    said = dict.fromkeys(analysis.plain(question))
    for name, meant in TABLES.items():
        for term in said:
            if len(found) >= MOST_OTHERS:
                return found
            for other in _others(name, term):
                if other not in asked:
                    found.setdefault(other, meant._replace(asked=term))
    return found


def saying_the_same(found: Mapping[str, Meant]) -> dict[str, Meant]:
    """Without the loose ones. Work is asked for in its own words: who fixes a login has no use for a leak that was fixed."""
    return {term: meant for term, meant in found.items() if not meant.loose}


@lru_cache(maxsize=4096)
def _others(name: str, term: str) -> tuple[str, ...]:
    """The terms that a table has for a term, each once."""
    words = [word for line in _table(name).get(term, ()) for word in line.split()]
    return tuple(dict.fromkeys(stem for stem in analysis.stems(words) if stem != term))


@lru_cache(maxsize=len(TABLES))
def _table(name: str) -> dict[str, list[str]]:
    """The lines that are about each term, as they are written: a question needs a few of them.

    `a b c`: each stands for each. `a > b c`: who asks for a also means b and c, and not the other way round.
    """
    heads: list[str] = []
    others: list[str] = []
    for line in (files("foveate.text") / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, rest = line.partition(" > ")
            words = [head] if rest else line.split()
            heads += words
            others += [rest or line] * len(words)
    table: dict[str, list[str]] = {}
    for stem, line in zip(analysis.stems(heads), others, strict=True):
        table.setdefault(stem, []).append(line)
    return table
