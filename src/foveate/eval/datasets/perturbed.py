"""A copy of beliefs and cases in other words, which shows whether anything is fitted to the names of a data set.

Comes in: documents and a seed. Goes out: the same documents, in which

- words of names and aliases, and words that are nearly such (a slip of the pen in a question), are written with other
  letters: each vowel stands for another vowel, each consonant for another consonant, so that `Redis` may read `Mebok`. What
  was near to a name is as near to the new one; endings and digits stay.
- other words are swapped for ones that mean the same, where there are such,
- questions and aliases may be in lower case, aliases and beliefs stand in another order, ids and domains have other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from random import Random
from typing import Any

from foveate.text import analysis

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
ENDINGS = ("ings", "ing", "ed", "es", "s")
DOMAIN = "domain:"
NEAR = 0.65
"""How alike a word is to a name when it may be meant for it: `k9s` and `k8s` are."""
SAME = (
    ("uses", "employs", "relies on"),
    ("using", "running", "employing"),
    ("prefers", "favours", "would rather have"),
    ("previously", "formerly", "in the past"),
    ("rather", "sooner", "preferably"),
    ("wants", "asks for", "would like"),
    ("writes", "produces", "puts down"),
    ("decided", "settled", "agreed"),
    ("replaced", "displaced", "succeeded"),
    ("debating", "weighing", "pondering"),
    ("evaluating", "assessing", "considering"),
    ("configure", "set up", "arrange"),
    ("good", "decent", "fine"),
    ("happens", "becomes", "goes on"),
    ("suggest", "recommend", "propose"),
    ("question", "query", "point"),
    ("team", "group", "crew"),
    ("thinking", "wondering", "reflecting"),
    ("explain", "spell out", "clarify"),
    ("overview", "outline", "survey"),
    ("problem", "trouble", "difficulty"),
    ("big", "large", "sizeable"),
    ("help", "assist", "support"),
    ("quick", "brief", "short"),
)
"""Words that mean about the same."""
_WORD = re.compile(r"(?<!['’])[A-Za-z0-9]{2,}")

Documents = Sequence[Mapping[str, Any]]


def perturbed(beliefs: Documents, cases: Documents, sessions: Documents, seed: int) -> tuple[Any, Any, Any]:
    everything = [beliefs, cases, sessions]
    names = _names(everything)
    words = frozenset(word.lower() for text in _strings(everything) for word in _WORD.findall(text))
    random = Random(seed)
    reword = _reworder(names, words, random)
    domains = [name for name in _strings(everything) if name.startswith(DOMAIN)]
    ids = _renamed([*(belief["_id"] for belief in _beliefs(everything)), *domains], random)

    def other(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: other(part, name) for name, part in value.items()}
        if isinstance(value, list):
            parts = [other(part, key) for part in value]
            return random.sample(parts, len(parts)) if key in ("aliases", "addAliases") else parts
        if not isinstance(value, str) or value in ids or key in _KEPT:
            return ids.get(value, value) if isinstance(value, str) else value
        changed = reword(value)
        return changed.lower() if key in _ANY_CASE and random.random() < 0.5 else changed

    one, two, three = (other(document) for document in everything)
    return random.sample(one, len(one)), two, three


_KEPT = frozenset({"scope", "caseId", "category", "type", "user_id", "userId", "epistemic_status", "label", "turnSignal"})
_ANY_CASE = frozenset({"query", "userMessage", "aliases", "addAliases"})


def _beliefs(value: Any) -> Iterable[Mapping[str, Any]]:
    """Every belief, wherever it stands: a turn of a session may teach one."""
    if isinstance(value, Mapping):
        if "canonical_name" in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _beliefs(part)


def _names(documents: Any) -> frozenset[str]:
    """The words of all names, in lower case."""
    said = [text for belief in _beliefs(documents) for text in (belief["canonical_name"], *belief["aliases"])]
    said += _added(documents)
    return frozenset(word.lower() for text in said for word in _WORD.findall(text)) - analysis.STOP_WORDS


def _added(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [*value.get("addAliases", ()), *_added(list(value.values()))]
    return [text for part in value for text in _added(part)] if isinstance(value, list) else []


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _strings(part)


def _reworder(names: frozenset[str], words: frozenset[str], random: Random) -> Callable[[str], str]:
    """A text in other words. Letters are drawn until no new name is a word that is there already."""
    ordinary = words - names
    letters = _letters(random)
    while any(_written(name, letters) in ordinary for name in names):
        letters = _letters(random)
    swaps = {word: random.choice(same) for word, *same in SAME if word in ordinary}

    @cache
    def changed(word: str) -> str:
        plain = word.lower()
        if plain in analysis.STOP_WORDS:
            return word
        if plain in names or get_close_matches(plain, names, 1, NEAR):
            return _written(word, letters)
        return swaps.get(plain, word)

    return lambda text: _WORD.sub(lambda found: changed(found[0]), text)


def _letters(random: Random) -> dict[int, int]:
    """Another letter for each, in both cases."""
    out: dict[int, int] = {}
    for group in (VOWELS, CONSONANTS):
        new = "".join(random.sample(group, len(group)))
        out |= str.maketrans(group + group.upper(), new + new.upper())
    return out


def _written(word: str, letters: Mapping[int, int]) -> str:
    ending = next((ending for ending in ENDINGS if word.lower().endswith(ending) and len(word) > len(ending) + 1), "")
    stem = word[: len(word) - len(ending)]
    return stem.translate(letters) + word[len(stem) :]


def _renamed(ids: Sequence[str], random: Random) -> dict[str, str]:
    unique = list(dict.fromkeys(ids))
    return {id: f"n-{n}" for id, n in zip(unique, random.sample(range(1000), len(unique)), strict=True)}
