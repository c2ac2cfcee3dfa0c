"""LoCoMo: long talks of two people over months, and questions whose evidence is a turn or several.

A file of it is a list of talks: `conversation.session_N` lists turns with a `dia_id`, `qa` the questions with their
`evidence`. A question without evidence, or with evidence that is not there, is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from foveate.eval.evidence import Said, sessions
from foveate.eval.model import Case, Entry, Evidence, Scene, Suite, World
from foveate.eval.reading import Misshapen, dated, find, parsed

FORM = (
    "a list of talks with conversation (session_N: turns of dia_id, speaker and text; session_N_date_time) "
    "and qa (question, evidence, category)"
)
TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN = re.compile(r"D:?(\d+):0*(\d+)")


def files(path: Path) -> list[Path]:
    return [find(path, "locomo", "conversations*.json", "locomo*.json")]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    (file,) = files(path)
    for n, sample in enumerate(parsed(file), 1):
        yield World(str(sample.get("sample_id", n)), partial(scene, sample, options.get("captions") == "yes"))


def scene(sample: Mapping[str, Any], captions: bool = False) -> Scene:
    talk = sample["conversation"]
    entries = {
        id: Entry(id=id, text=_text(turn, captions), session=name, when=_when(talk[f"{name}_date_time"]))
        for name, said in talk.items()
        if isinstance(said, list)
        for turn in said
        if turn["text"].strip()
        for id in _turns([turn["dia_id"]])
    }
    if not entries:
        raise Misshapen("its conversation holds no turns")
    last = max(entry.when or "" for entry in entries.values())
    cases = []
    for n, asked in enumerate(sample["qa"], 1):
        needed = _turns(asked["evidence"])
        if needed and all(id in entries for id in needed):
            cases.append(_case(str(n), asked, [entries[id] for id in needed], last))
    return Scene(cases, list(entries.values()), skipped=len(sample["qa"]) - len(cases))


def _case(id: str, asked: Mapping[str, Any], needed: Sequence[Entry], last: str) -> Case:
    turns = tuple(Said(entry.id, entry.text) for entry in needed)
    wanted: tuple[Evidence, ...] = (*turns, *sessions([(entry.session or "", entry.text) for entry in needed]))
    return Case(id, asked["question"], wanted, type=TYPES.get(asked["category"], str(asked["category"])), now=last)


def _text(turn: Mapping[str, Any], captions: bool) -> str:
    seen = turn.get("blip_caption") if captions else None
    return f"{turn['speaker']}: {turn['text']}" + (f" [shows {seen}]" if seen else "")


def _turns(names: Sequence[str]) -> list[str]:
    """`D1:3`, `D:1:03` and `D1:3; D2:4` as `D1:3` and `D2:4`, each once."""
    return list(dict.fromkeys(f"D{a}:{int(b)}" for name in names for a, b in _TURN.findall(name)))


def _when(text: str) -> str:
    return dated(text, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023")


SUITE = Suite(
    name="locomo",
    about="LoCoMo: talks over months; evidence is turns, and the sessions they are of",
    worlds=worlds,
    files=files,
    form=FORM,
    profile="chat",
    options={"captions": "yes: what the shared pictures show is told too, as in LoCoMo's own prompts"},
    top={"session": (5, 10), "turn": (10,)},
)
