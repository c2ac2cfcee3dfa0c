"""The prompt cache: how much of each call repeats the call before it from the first byte, turn by turn.

A talk of LoCoMo: what was said up to its middle is known, then 50 turns follow, and each is kept. A coding session: the
50 latest subjects of this repository's history are asked of its files as they are now. In both the store holds an
identity and ten rules. A context is computed for every turn; in the talk also held until `refresh_if_needed` says that it
no longer serves, with the turns since appended (what the store holds answers that question, and the coding session's
holds rules alone). Beside that, the same as a transcript: all that was said (or shown, in the coding session), and a
window of the latest turns.

A provider's cache reads what is the same from the start of the prompt; *fresh* is what it cannot read. The orders of the
volatile slots are compared on the same contexts: as the profile has them, and those first whose text was most often that of
the call before.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import foveate
from bench.corpus import DATA
from bench.kit import is_missing
from foveate.cli.render import print_lines, table
from foveate.eval.datasets import load_suite
from foveate.pipeline.assembly import joined
from foveate.text import tokens

TURNS = 50
WINDOW = 20
BUDGETS = (1000, 4000)
ROOM = 32_000
"""Tokens that a held context and the turns since may take together."""
CACHED_PRICE = 0.1
"""What a token from the cache costs beside a fresh one. Assumed: providers differ."""
COUNTER = "o200k"
REPOSITORY = Path(__file__).parents[1]

IDENTITY = "You are Keel, who works with this team. Careful, curious, brief; you say what you do not know."
RULES = (
    "Answer in British spelling.",
    "Give dates as 14 May 2026, never as numbers alone.",
    "Never share an address or a telephone number.",
    "Say where you know a thing from.",
    "Ask before anything is deleted.",
    "Prefer three sentences to a list.",
    "Temperatures are in Celsius, distances in kilometres.",
    "Do not guess at somebody's mood.",
    "Call people by their first name.",
    "Code that you suggest has been run.",
)


def keep_rules(engine: foveate.Engine) -> str:
    """The rules, kept; and as a transcript would have them."""
    engine.add("identity", IDENTITY)
    for rule in RULES:
        engine.add("instruction", rule)
    return "\n".join((IDENTITY, *(f"- {rule}" for rule in RULES))) + "\n"


def shared(one: str, other: str) -> str:
    """What two prompts have in common from the start."""
    return one[: next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))]


def figures(prompts: Sequence[str]) -> dict:
    """What a series of prompts costs, and how much of it a cache could have read."""
    sizes = [tokens.count(prompt, COUNTER) for prompt in prompts]
    same = [0, *(tokens.count(shared(*pair), COUNTER) for pair in pairwise(prompts))]
    price = sum(size - part * (1 - CACHED_PRICE) for size, part in zip(sizes, same, strict=True))
    return {
        "tokens a call": round(sum(sizes) / len(sizes)),
        "largest": max(sizes),
        "repeated %": round(100 * sum(same) / sum(sizes), 1),
        "fresh a call": round((sum(sizes) - sum(same)) / len(sizes)),
        "price a call": round(price / len(sizes)),
    }


def prompt(context: foveate.Context, said: str, order: Sequence[str] = ()) -> str:
    """A context and the turn that it is for, its volatile slots in another order where one is given."""
    place = {name: n for n, name in enumerate(order)}
    stable = [section for section in context.sections if section.stable]
    rest = [section for section in context.sections if not section.stable]
    rest.sort(key=lambda section: place.get(section.name, len(place)))
    return f"{joined([*stable, *rest])}\n{said}\n"


def rarely_changed_first(contexts: Sequence[foveate.Context]) -> list[str]:
    """The volatile slots by how often their text was that of the call before, the steadiest first."""
    steady: Counter[str] = Counter()
    for before, after in pairwise(contexts):
        was = {section.name: section.content for section in before.sections if not section.stable}
        is_now = {section.name: section.content for section in after.sections if not section.stable}
        steady.update({name: was.get(name) == is_now.get(name) for name in {**was, **is_now}})
    return [name for name, _ in sorted(steady.items(), key=lambda pair: -pair[1])]  # of equals, as the profile has them


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is asked, turn by turn; `before` is what a transcript would hold already, `keep` what becomes of a turn."""

    turns: Sequence[str]
    rules: str
    before: str = ""
    keep: Callable[[str], object] = lambda said: None
    shows: bool = False
    """Whether a transcript holds what was looked at in each turn, as that of a coding agent does."""
    options: Mapping[str, Any] = field(default_factory=dict)


def told(open_world: Callable[[], AbstractContextManager[tuple[foveate.Engine, Conversation]]], budget: int) -> dict:
    """The figures of a conversation, by how its prompts are made."""
    with open_world() as (engine, talk):
        contexts = []
        for turn in talk.turns:
            contexts.append(engine.context(turn, budget=budget, **talk.options))
            talk.keep(turn)
    held, number = [], 0
    if not talk.shows:
        with open_world() as (engine, talk):
            held, number = held_prompts(engine, talk, budget)
    order = rarely_changed_first(contexts)
    asked = list(zip(contexts, talk.turns, strict=True))
    said = [f"{context.volatile}\n{turn}\n" if talk.shows else f"{turn}\n" for context, turn in asked]
    heads = [said[: n + 1] for n in range(len(said))]
    return {
        "turns": len(talk.turns),
        "budget": budget,
        "stable tokens": contexts[0].prefix.tokens,
        "stable parts that differ": len({context.stable for context in contexts}),
        "steadiest first": order,
        "contexts that were held": number,
        "rows": {
            "computed each turn": figures([prompt(context, turn) for context, turn in asked]),
            "... steadiest slots first": figures([prompt(context, turn, order) for context, turn in asked]),
            **({"held until it no longer serves": figures(held)} if held else {}),
            "the whole transcript": figures([talk.rules + talk.before + "".join(head) for head in heads]),
            f"the last {WINDOW} turns": figures([talk.rules + "".join(head[-WINDOW:]) for head in heads]),
        },
    }


def held_prompts(engine: foveate.Engine, talk: Conversation, budget: int) -> tuple[list[str], int]:
    """Each turn after the context that still serves it and the turns since; and how many contexts that took."""
    prompts: list[str] = []
    context, since, number = None, "", 0
    for turn in talk.turns:
        room = {"window": ROOM, "spent": tokens.count(since, COUNTER)}
        found = engine.refresh(context, turn, budget=budget, **room, **talk.options).context
        if found is not None:
            context, since, number = found, "", number + 1
        since += f"{turn}\n"
        prompts.append(f"{context.text}\n{since}")
        talk.keep(turn)
    return prompts, number


@contextmanager
def talk() -> Iterator[tuple[foveate.Engine, Conversation]]:
    """The middle of a talk, with all that was said before it in the store."""
    dataset = next(iter(load_suite("locomo").subsets(DATA / "locomo", {}))).load()
    documents = dataset.documents
    half = len(documents) // 2
    with tempfile.TemporaryDirectory() as folder, foveate.open(folder, personal=False, code=False, profile="chat") as engine:
        rules = keep_rules(engine)
        for document in documents[:half]:
            engine.add("event", document.text, key=document.id, session=document.session, created=document.timestamp)
        yield (
            engine,
            Conversation(
                turns=[document.text for document in documents[half : half + TURNS]],
                rules=rules,
                before="".join(f"{document.text}\n" for document in documents[:half]),
                keep=lambda said: engine.add("event", said, session="now"),
                options={"session": "now"},
            ),
        )


@contextmanager
def coding() -> Iterator[tuple[foveate.Engine, Conversation]]:
    """The subjects of the latest commits, the oldest first, asked of a copy of the sources."""
    asked = _git("log", f"-{TURNS}", "--format=%s").splitlines()[::-1]
    files = [name for name in _git("ls-files", "src").splitlines() if name.endswith(".py")]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")  # its name is in the context
        for name in files:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((REPOSITORY / name).read_bytes())
        with foveate.open(root, personal=False, code=True, profile="coding") as engine:
            yield engine, Conversation(turns=asked, rules=keep_rules(engine), shows=True)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout


def show(name: str, found: dict) -> None:
    print(
        f"\n{name}: {found['turns']} turns, {found['budget']} tokens, {found['stable tokens']} of them stable; "
        f"steadiest: {', '.join(found['steadiest first'])}; held: {found['contexts that were held']} contexts"
    )
    rows = found["rows"]
    heads = tuple(next(iter(rows.values())))
    print_lines(table(("", *heads), [(what, *map(str, row.values())) for what, row in rows.items()], left=1))


def run() -> dict:
    out: dict = {"missed": []}
    worlds = {"talk": talk} if not is_missing(DATA / "locomo") else {}
    worlds |= {"coding": coding} if _git("ls-files", "src") else {}
    for name, world in worlds.items():
        for budget in BUDGETS:
            found = out[f"{name} {budget}"] = told(world, budget)
            show(name, found)
            if found["stable parts that differ"] > 1:
                out["missed"].append(f"{name}: the stable part changed, and nothing that stands in it did.")
    return out
