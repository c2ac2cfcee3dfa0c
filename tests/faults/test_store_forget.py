"""No byte of a forgotten record remains in the store's files: not in tables, pages, the WAL or compressed data."""

from __future__ import annotations

import random
import re
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest

import foveate
from foveate import testing
from foveate.engine import Engine
from foveate.store.protocol import AddResult
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import FixedClock, counting_ids
from foveate.types import Scope
from records import add_record

POOL = [
    f"{a}{b}{c}" for a in ("lan", "mor", "tek", "sul") for b in ("dig", "fer", "hop", "wis") for c in ("ton", "ber", "ka")
]
"""Words of the other records."""


LETTERS, LENGTH = "bcdfghjklmnpqrstvwxz", 12
RUN = re.compile(f"[{LETTERS}]{{{LENGTH},}}".encode())


def rare_words(rng: random.Random, number: int) -> list[str]:
    """Return words that occur in no other record."""
    return ["".join(rng.choices(LETTERS, k=LENGTH)) for _ in range(number)]


def open_at(folder: Path, clock: FixedClock) -> Engine:
    ids = counting_ids()
    return testing.engine(folder, personal=False, clock=clock, ids=lambda kind, at: f"{ids(kind, at)}_{at}", budget=4000)


def bytes_of(folder: Path) -> bytes:
    """Return the bytes of the store's files, read by another process: closing a file here would drop SQLite's locks."""
    files = sorted(str(path) for path in folder.iterdir() if path.name.startswith("state.db"))
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def unpacked(raw: bytes) -> Iterable[bytes]:
    """Yield everything that can be decompressed, from each position where a stream could begin, complete or truncated."""
    for header in (b"\x78\x5e", b"\x78\x9c", b"\x78\x01", b"\x78\xda"):
        start = raw.find(header)
        while start >= 0:
            stream, out = zlib.decompressobj(), b""
            try:
                for offset in range(start, min(start + 65_536, len(raw)), 256):
                    out += stream.decompress(raw[offset : offset + 256])
            except zlib.error:
                pass
            yield out
            start = raw.find(header, start + 1)


def blobs(path: Path) -> Iterable[bytes]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for query in ("select before from history where before is not null", "select body from receipts"):
        for (blob,) in connection.execute(query):
            yield zlib.decompress(blob)
    connection.close()


def traces(folder: Path, words: Iterable[str]) -> set[str]:
    """Return the words that still occur in a file."""
    raw = bytes_of(folder)
    haystack = b"\n".join((raw, raw.replace(b"\0", b""), *unpacked(raw), *blobs(folder / "state.db"))).lower()
    runs = RUN.findall(haystack)  # without the zeros, UTF-16 of either order reads as ASCII
    there = {run[at : at + LENGTH] for run in runs for at in range(len(run) - LENGTH + 1)}
    return {word for word in words if word.encode() in there}


def others(rng: random.Random, engine: Engine, number: int) -> None:
    """Add other records before and after the secret one, so that pages fill, split and merge."""
    engine.store.add_many(
        ("note", " ".join(rng.choices(POOL, k=rng.randint(4, 60))) + f" {rng.random()}", {}) for _ in range(number)
    )


def keep_secret(rng: random.Random, engine: Engine, words: list[str]) -> AddResult:
    """Add a record with rare words in each of its fields."""
    values: dict[str, Any] = {"tags": [words[0]], "entities": [words[1]], "origin": words[2], "key": words[3]}
    kind = rng.choice(["fact", "note", "decision", "entity", "procedure"])
    if kind == "fact" and rng.random() < 0.7:
        values |= {"subject": words[4], "attribute": "is"}
    if kind == "note":
        values |= {"paths": [f"src/{words[5]}.py"], "detail": {"deep": [words[6]]}}
    if kind == "entity":
        values |= {"name": words[5], "aliases": [words[6]]}
    return add_record(engine, kind, " ".join(words), **values)


def work(rng: random.Random, engine: Engine, clock: FixedClock, words: list[str], size: int) -> list[str]:
    """Add, edit, supersede, link and query a record. Append its words to `words` and return its ids."""
    words += rare_words(rng, size)
    record = keep_secret(rng, engine, words).record
    ids = [record.id]
    engine.context(" ".join(words[:40]))
    if record.attribute:
        clock.tick(1000)
        newer = rare_words(rng, 9)
        words += newer
        ids.append(engine.add("fact", " ".join(newer), subject=record.subject, attribute="is").record.id)
    for _ in range(rng.randint(0, 3)):
        clock.tick(1000)
        edited = rare_words(rng, rng.choice([5, size]))
        words += edited
        engine.edit(ids[-1], text=" ".join(edited), tags=[edited[0]])
        engine.context(" ".join(edited[:40]))
    for _ in range(rng.randint(0, 2)):
        engine.undo(ids[-1])
    other = engine.search(rng.choice(POOL), limit=1)
    if other:
        engine.link(ids[0], "near", other[0].record.id)
    engine.context(" ".join(rng.choices(POOL, k=5)))
    return ids


@pytest.mark.parametrize("seed", range(32))
def test_a_forgotten_record_leaves_no_byte_in_any_file(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    clock, words = FixedClock(step=7), []
    size, before, after = ((40, 9, 700, 4000)[seed % 4], rng.choice([0, 60, 250]), rng.choice([0, 60, 250]))
    with open_at(tmp_path, clock) as engine:
        others(rng, engine, before)
        ids = work(rng, engine, clock, words, size)
        others(rng, engine, after)
        for hit in engine.search(rng.choice(POOL), limit=20, kinds=["note"]):
            engine.edit(hit.record.id, text=" ".join(rng.choices(POOL, k=rng.randint(1, 80))) + f" {rng.random()}")
    folder = tmp_path / ".foveate"
    with open_at(tmp_path, clock) as engine:
        kept = {record.id for record in records_of(engine)}
        assert traces(folder, words[:5]), "the test must be able to see the words"
        done = engine.forget(*ids)
        assert (done.counts["records"], done.warnings) == (len(ids), ())
        assert traces(folder, words) == set()
        assert {record.id for record in records_of(engine)} == kept - set(ids)
        assert engine.store.health().ok
        others(rng, engine, 20)
        assert traces(folder, words) == set()
    assert traces(folder, words) == set()


def records_of(engine: Engine) -> list[foveate.Record]:
    with engine.store.data.store.read(engine.scope) as reader:
        return list(reader.records())


def test_a_pending_receipt_of_a_forgotten_record_leaves_no_byte(tmp_path: Path) -> None:
    words = rare_words(random.Random(1), 12)
    with open_at(tmp_path, FixedClock(step=7)) as engine:
        record = engine.add("fact", " ".join(words)).record
        engine.context(" ".join(words))
        engine.forget(record.id)
        assert traces(tmp_path / ".foveate", words) == set()
    assert traces(tmp_path / ".foveate", words) == set()


def test_forgetting_a_personal_record_scrubs_the_receipts_of_the_project(tmp_path: Path) -> None:
    words = rare_words(random.Random(2), 12)
    own = SQLiteStore(tmp_path / "own.db")
    store = SQLiteStore(tmp_path / "state.db")
    with Engine(store, personal=own, scope=Scope("main"), clock=FixedClock(step=7)) as engine:
        record = engine.add("fact", " ".join(words), personal=True).record
        assert engine.context(" ".join(words)).items
        engine.receipts.flush()
        assert traces(tmp_path, words)
        engine.forget(record.id)
        assert traces(tmp_path, words) == set()


def test_forget_warns_about_a_reader_that_prevents_the_rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.store.sqlite.connections.BUSY_TIMEOUT_MS", 50)
    words = rare_words(random.Random(3), 12)
    path = tmp_path / "state.db"
    store, other = SQLiteStore(path), SQLiteStore(path)
    with Engine(store, scope=Scope("main"), clock=FixedClock(step=7)) as engine:
        record = engine.add("fact", " ".join(words)).record
        with other.read(Scope("main")) as reader:
            assert reader.get([record.id])
            (warning,) = engine.forget(record.id).warnings
            assert "another process is reading" in warning
            assert reader.get([record.id]), "a snapshot stays what it was"
            assert "forgotten records" in store.health().problems[0]
        store.rebuild()
        assert store.health().ok
        assert traces(tmp_path, words) == set()
    other.close()
