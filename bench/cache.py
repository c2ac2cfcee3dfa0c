"""Measures how much of each prompt a provider's prompt cache can read: what repeats the previous prompt from its first byte.

The conversation: the first half of one from LoCoMo is stored, then 50 turns follow, and each is stored. The coding session:
the subjects of the 50 latest commits are queries to the files of this repository as they are now. Both stores have an
identity and ten rules. A context is computed for every turn. In the conversation it is also kept until `refresh`
replaces it, with the turns since appended. The alternatives are the whole transcript, and a window of the latest turns.

*Fresh* are the tokens that the cache cannot read. Two orders of the volatile slots are compared on the same contexts: the
profile's, and the slots first whose text changed least often.
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
from foveate.pipeline.assembly import join_sections
from foveate.text import tokens

TURNS = 50
WINDOW = 20
BUDGETS = (1000, 4000)
MAX_HELD_TOKENS = 32_000
"""Tokens of a kept context and the turns since."""
CACHED_PRICE = 0.1
"""The price of a cached token relative to a fresh one. An assumption: providers differ."""
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


def store_rules(engine: foveate.Engine) -> str:
    """Store the rules, and return them as a transcript would have them."""
    engine.add("identity", IDENTITY)
    for rule in RULES:
        engine.add("instruction", rule)
    return "\n".join((IDENTITY, *(f"- {rule}" for rule in RULES))) + "\n"


def common_prefix(a: str, b: str) -> str:
    return a[: next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))]


def metrics(prompts: Sequence[str]) -> dict:
    """Return the cost of a series of prompts, and how much of it a cache could have read."""
    sizes = [tokens.count(prompt, COUNTER) for prompt in prompts]
    same = [0, *(tokens.count(common_prefix(*pair), COUNTER) for pair in pairwise(prompts))]
    price = sum(size - part * (1 - CACHED_PRICE) for size, part in zip(sizes, same, strict=True))
    return {
        "tokens a call": round(sum(sizes) / len(sizes)),
        "largest": max(sizes),
        "repeated %": round(100 * sum(same) / sum(sizes), 1),
        "fresh a call": round((sum(sizes) - sum(same)) / len(sizes)),
        "price a call": round(price / len(sizes)),
    }


def prompt(context: foveate.Context, turn: str, order: Sequence[str] = ()) -> str:
    """Return a context and its turn, with the volatile slots in the given order."""
    position = {name: n for n, name in enumerate(order)}
    stable = [section for section in context.sections if section.stable]
    rest = [section for section in context.sections if not section.stable]
    rest.sort(key=lambda section: position.get(section.name, len(position)))
    return f"{join_sections([*stable, *rest])}\n{turn}\n"


def steadiest_slots_first(contexts: Sequence[foveate.Context]) -> list[str]:
    """Return the volatile slots, those first whose text was most often the same as in the previous context."""
    steady: Counter[str] = Counter()
    for before, after in pairwise(contexts):
        was = {section.name: section.content for section in before.sections if not section.stable}
        is_now = {section.name: section.content for section in after.sections if not section.stable}
        steady.update({name: was.get(name) == is_now.get(name) for name in {**was, **is_now}})
    return [name for name, _ in sorted(steady.items(), key=lambda pair: -pair[1])]  # equal ones in the profile's order


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns; `before` is the earlier transcript, and `keep` stores a turn."""

    turns: Sequence[str]
    rules: str
    before: str = ""
    keep: Callable[[str], object] = lambda turn: None
    shows: bool = False
    """Whether a transcript contains the code that each turn read, as that of a coding agent does."""
    options: Mapping[str, Any] = field(default_factory=dict)


def measure(scenario: Callable[[], AbstractContextManager[tuple[foveate.Engine, Conversation]]], budget: int) -> dict:
    """Return the metrics of a conversation for each way to make its prompts."""
    with scenario() as (engine, talk):
        contexts = []
        for turn in talk.turns:
            contexts.append(engine.context(turn, budget=budget, **talk.options))
            talk.keep(turn)
    kept, number = [], 0
    if not talk.shows:
        with scenario() as (engine, talk):
            kept, number = prompts_of_kept_contexts(engine, talk, budget)
    order = steadiest_slots_first(contexts)
    pairs = list(zip(contexts, talk.turns, strict=True))
    transcript = [f"{context.volatile}\n{turn}\n" if talk.shows else f"{turn}\n" for context, turn in pairs]
    heads = [transcript[: n + 1] for n in range(len(transcript))]
    return {
        "turns": len(talk.turns),
        "budget": budget,
        "stable tokens": contexts[0].prefix.tokens,
        "stable parts that differ": len({context.stable for context in contexts}),
        "steadiest first": order,
        "contexts that were kept": number,
        "rows": {
            "computed each turn": metrics([prompt(context, turn) for context, turn in pairs]),
            "... steadiest slots first": metrics([prompt(context, turn, order) for context, turn in pairs]),
            **({"kept until a refresh is needed": metrics(kept)} if kept else {}),
            "the whole transcript": metrics([talk.rules + talk.before + "".join(head) for head in heads]),
            f"the last {WINDOW} turns": metrics([talk.rules + "".join(head[-WINDOW:]) for head in heads]),
        },
    }


def prompts_of_kept_contexts(engine: foveate.Engine, talk: Conversation, budget: int) -> tuple[list[str], int]:
    """Return a prompt for each turn: a context, the turns since it and the turn. Also return the number of contexts."""
    prompts: list[str] = []
    context, since, number = None, "", 0
    for turn in talk.turns:
        limits = {"window": MAX_HELD_TOKENS, "conversation_tokens": tokens.count(since, COUNTER)}
        refreshed = engine.refresh(context, turn, budget=budget, **limits, **talk.options).context
        if refreshed is not None:
            context, since, number = refreshed, "", number + 1
        since += f"{turn}\n"
        prompts.append(f"{context.text}\n{since}")
        talk.keep(turn)
    return prompts, number


@contextmanager
def talk() -> Iterator[tuple[foveate.Engine, Conversation]]:
    """Open a store with the first half of a conversation, and yield its second half."""
    dataset = next(iter(load_suite("locomo").subsets(DATA / "locomo", {}))).load()
    documents = dataset.documents
    half = len(documents) // 2
    with tempfile.TemporaryDirectory() as folder, foveate.open(folder, personal=False, code=False, profile="chat") as engine:
        rules = store_rules(engine)
        for document in documents[:half]:
            engine.add("event", document.text, key=document.id, session=document.session, created=document.timestamp)
        yield (
            engine,
            Conversation(
                turns=[document.text for document in documents[half : half + TURNS]],
                rules=rules,
                before="".join(f"{document.text}\n" for document in documents[:half]),
                keep=lambda turn: engine.add("event", turn, session="now"),
                options={"session": "now"},
            ),
        )


@contextmanager
def coding() -> Iterator[tuple[foveate.Engine, Conversation]]:
    """Open a copy of the sources, and yield the subjects of the latest commits, the oldest first."""
    subjects = _git("log", f"-{TURNS}", "--format=%s").splitlines()[::-1]
    files = [name for name in _git("ls-files", "src").splitlines() if name.endswith(".py")]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")  # its name is in the context
        for name in files:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((REPOSITORY / name).read_bytes())
        with foveate.open(root, personal=False, code=True, profile="coding") as engine:
            yield engine, Conversation(turns=subjects, rules=store_rules(engine), shows=True)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout


def show(name: str, result: dict) -> None:
    print(
        f"\n{name}: {result['turns']} turns, {result['budget']} tokens, {result['stable tokens']} of them stable; "
        f"steadiest: {', '.join(result['steadiest first'])}; kept: {result['contexts that were kept']} contexts"
    )
    rows = result["rows"]
    headers = tuple(next(iter(rows.values())))
    print_lines(table(("", *headers), [(name, *map(str, row.values())) for name, row in rows.items()], left=1))


def run() -> dict:
    out: dict = {"missed": []}
    scenarios = {"talk": talk} if not is_missing(DATA / "locomo") else {}
    scenarios |= {"coding": coding} if _git("ls-files", "src") else {}
    for name, scenario in scenarios.items():
        for budget in BUDGETS:
            result = out[f"{name} {budget}"] = measure(scenario, budget)
            show(name, result)
            if result["stable parts that differ"] > 1:
                out["missed"].append(f"{name}: the stable part changed, although its content did not.")
    return out
