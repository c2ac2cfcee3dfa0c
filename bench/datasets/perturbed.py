"""A copy of PrecisionMemBench in other words. It shows whether a result is fitted to the names in the data set.

- Words of names and aliases, also misspelt ones, get other letters: each vowel becomes another vowel and each consonant
  another consonant, so that `Redis` may become `Mebok`. Misspelt names stay as near to the new name. Endings and digits
  stay.
- Other words are replaced by synonyms from a list.
- Queries and aliases may be in lower case, aliases and beliefs have another order, ids and domains have other names.
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
MIN_NAME_SIMILARITY = 0.65
"""How similar a word must be to a name to count as misspelt: `k9s` and `k8s` are."""
SYNONYMS = (
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
_WORD = re.compile(r"(?<!['’])[A-Za-z0-9]{2,}")

Documents = Sequence[Mapping[str, Any]]


def perturb(beliefs: Documents, cases: Documents, sessions: Documents, seed: int) -> tuple[Any, Any, Any]:
    """Return the documents in other words. The same seed gives the same copy."""
    everything = [beliefs, cases, sessions]
    names = _names(everything)
    words = frozenset(word.lower() for text in _strings(everything) for word in _WORD.findall(text))
    random = Random(seed)
    reword = _make_rewriter(names, words, random)
    domains = [name for name in _strings(everything) if name.startswith(DOMAIN)]
    ids = _rename_ids([*(belief["_id"] for belief in _beliefs(everything)), *domains], random)

    def rewrite(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: rewrite(part, name) for name, part in value.items()}
        if isinstance(value, list):
            parts = [rewrite(part, key) for part in value]
            return random.sample(parts, len(parts)) if key in ("aliases", "addAliases") else parts
        if not isinstance(value, str) or value in ids or key in _UNCHANGED_KEYS:
            return ids.get(value, value) if isinstance(value, str) else value
        changed = reword(value)
        return changed.lower() if key in _CASE_INSENSITIVE_KEYS and random.random() < 0.5 else changed

    one, two, three = (rewrite(document) for document in everything)
    return random.sample(one, len(one)), two, three


_UNCHANGED_KEYS = frozenset(
    {"scope", "caseId", "category", "type", "user_id", "userId", "epistemic_status", "label", "turnSignal"}
)
_CASE_INSENSITIVE_KEYS = frozenset({"query", "userMessage", "aliases", "addAliases"})


def _beliefs(value: Any) -> Iterable[Mapping[str, Any]]:
    """Yield every belief at any depth: a turn of a session may teach one."""
    if isinstance(value, Mapping):
        if "canonical_name" in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _beliefs(part)


def _names(documents: Any) -> frozenset[str]:
    """Return the words of all names in lower case."""
    names = [text for belief in _beliefs(documents) for text in (belief["canonical_name"], *belief["aliases"])]
    names += _added_aliases(documents)
    return frozenset(word.lower() for text in names for word in _WORD.findall(text)) - analysis.STOP_WORDS


def _added_aliases(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [*value.get("addAliases", ()), *_added_aliases(list(value.values()))]
    return [text for part in value for text in _added_aliases(part)] if isinstance(value, list) else []


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _strings(part)


def _make_rewriter(names: frozenset[str], words: frozenset[str], random: Random) -> Callable[[str], str]:
    """Return a function that rewrites a text. Letters are drawn until no new name is a word of the data."""
    ordinary = words - names
    letters = _letters(random)
    while any(_apply_letters(name, letters) in ordinary for name in names):
        letters = _letters(random)
    swaps = {word: random.choice(same) for word, *same in SYNONYMS if word in ordinary}

    @cache
    def replace_word(word: str) -> str:
        plain = word.lower()
        if plain in analysis.STOP_WORDS:
            return word
        if plain in names or get_close_matches(plain, names, 1, MIN_NAME_SIMILARITY):
            return _apply_letters(word, letters)
        return swaps.get(plain, word)

    return lambda text: _WORD.sub(lambda match: replace_word(match[0]), text)


def _letters(random: Random) -> dict[int, int]:
    """Draw another letter for each letter, in both cases."""
    out: dict[int, int] = {}
    for group in (VOWELS, CONSONANTS):
        new = "".join(random.sample(group, len(group)))
        out |= str.maketrans(group + group.upper(), new + new.upper())
    return out


def _apply_letters(word: str, letters: Mapping[int, int]) -> str:
    ending = next((ending for ending in ENDINGS if word.lower().endswith(ending) and len(word) > len(ending) + 1), "")
    stem = word[: len(word) - len(ending)]
    return stem.translate(letters) + word[len(stem) :]


def _rename_ids(ids: Sequence[str], random: Random) -> dict[str, str]:
    unique = list(dict.fromkeys(ids))
    return {id: f"n-{n}" for id, n in zip(unique, random.sample(range(1000), len(unique)), strict=True)}
