"""Small worlds: the prompt that the model receives, and the receipt, each as a file that people can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foveate import Context
from foveate.receipts.codec import to_json
from foveate.receipts.receipt import Receipt
from worlds import WORLDS, World

SNAPSHOTS = Path(__file__).parent / "snapshots"


def as_markdown(world: World, context: Context) -> str:
    """The question, or the task that is one, and the messages, as the model receives them."""
    parts = [f"<!-- {world.name}: {world.query or world.options['task']} -->\n"]
    parts += [f"<!-- {message['role']} -->\n{message['content']}" for message in context.messages()]
    return "\n".join(parts)


def as_json(receipt: Receipt) -> str:
    """The receipt without times and without the profile's data; one candidate a line."""
    document: dict[str, Any] = to_json(receipt)
    candidates = document.pop("candidates")
    document = {name: value for name, value in document.items() if name not in ("created", "ms")}
    document["request"] = {name: value for name, value in document["request"].items() if name != "now"}
    document["profile"] = {
        name: document["profile"][name] for name in ("name", "total", "written_for", "reserve", "weights")
    }
    document["sources"] = [{k: v for k, v in report.items() if k != "ms"} for report in document["sources"]]
    slots = document["budget"].pop("slots")
    body = json.dumps(document, ensure_ascii=False, indent=1)[:-2]
    return f'{body},\n "slots": [\n{_rows(slots)}\n ],\n "candidates": [\n{_rows(candidates)}\n ]\n}}\n'


def _rows(rows: Any) -> str:
    return ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)


def check(path: Path, now: str, update: bool) -> None:
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    assert path.is_file(), f"There is no snapshot {path.name}; run `pytest tests/golden --update-golden`."
    assert now == path.read_text(encoding="utf-8"), f"{path.name} has changed; if it should, `--update-golden`."


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_prompt_and_the_receipt_are_as_they_were(world: World, update_golden: bool) -> None:
    with world.open() as engine:
        context = world.context(engine)
        check(SNAPSHOTS / f"{world.name}.md", as_markdown(world, context), update_golden)
        check(SNAPSHOTS / f"{world.name}.json", as_json(engine.receipts.get(context)), update_golden)


def test_every_snapshot_belongs_to_a_world() -> None:
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(WORLDS)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_receipt_snapshot_is_json(world: World) -> None:
    assert json.loads((SNAPSHOTS / f"{world.name}.json").read_text("utf-8"))["candidates"]
