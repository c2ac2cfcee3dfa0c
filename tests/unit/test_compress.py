"""Compression: fewer tokens, word for word, and nothing cut in the middle."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import InputError
from foveate.text import tokens
from foveate.text.compress import compress, split_parts
from worlds import open_engine

REPORT = """\
# Storage

Thanks everybody for coming. We looked at three stores over two weeks.
We decided to keep everything in Postgres because one database then holds rows and vectors.
Do not run the migration before Friday. It needs 3.5 GB of memory and 1,200 connections.

```sql
create table notes (id text primary key);
create index notes_by_time on notes (created);
```

The nightly report took 40 s instead of 320 s. Kafka stays as it is. The weather was nice.
Somebody might update the wiki. Nobody has to change code, as the API stays the same.
"""


def test_a_third_unless_told() -> None:
    """003-08"""
    shorter = compress(REPORT)
    assert 0 < tokens.count(shorter) <= tokens.count(REPORT) // 3
    assert "We decided to keep everything in Postgres because one database then holds rows and vectors." in shorter


@pytest.mark.parametrize("room", [20, 40, 60, 90, 120])
def test_never_more_than_it_may(room: int) -> None:
    assert tokens.count(compress(REPORT, room)) <= room


def test_what_fits_comes_back_as_it_is() -> None:
    assert compress(REPORT, 10_000) is REPORT


def test_the_query_decides_what_stays() -> None:
    assert "Kafka stays as it is." in compress(REPORT, 40, "what about Kafka?")
    assert "Kafka" not in compress(REPORT, 40, "when does the migration run?")
    assert "Do not run the migration before Friday." in compress(REPORT, 40, "when does the migration run?")


@pytest.mark.parametrize("room", range(15, 150, 5))
def test_parts_are_kept_whole_and_in_order(room: int) -> None:
    shorter = compress(REPORT, room, "migration index")
    whole = [part.strip() for part in split_parts(REPORT) if part.strip()]
    places = [shorter.find(part) for part in whole if part in shorter]
    assert places == sorted(places)
    rest = shorter
    for part in whole:
        rest = rest.replace(part, "", 1)
    assert re.sub(r"\[…\]|\[\d+ of \d+ parts left out\]|\s", "", rest) == "", "nothing but parts and marks"
    assert shorter.count("```") in (0, 2)


def test_it_says_what_was_left_out() -> None:
    shorter = compress(REPORT, 60)
    assert "[…]" in shorter
    number, whole = map(int, re.findall(r"\[(\d+) of (\d+) parts left out\]\Z", shorter)[0])
    assert 0 < number < whole == len(split_parts(REPORT))


def test_a_log_is_taken_by_lines() -> None:
    log = "\n".join(f"2026-03-01 10:00:{n:02} INFO worker {n} handled a request" for n in range(50))
    shorter = compress(log, 60, "worker 31")
    assert "2026-03-01 10:00:31 INFO worker 31 handled a request" in shorter.splitlines()


def test_a_room_that_holds_no_part_holds_the_beginning_of_the_best() -> None:
    assert compress(REPORT, 9) == "We decided to keep everything in Postgres …"
    assert compress(REPORT, 1) == ""


@pytest.mark.parametrize("room", [0, -1, 2.5])
def test_a_room_is_a_number_of_tokens(room: float) -> None:
    with pytest.raises(InputError, match="max_tokens must be a positive whole number, got"):
        compress(REPORT, room)  # type: ignore[arg-type]


@given(st.text(alphabet="ab .!\n`#-1", max_size=200), st.integers(1, 60))
def test_any_text_splits_into_itself_and_keeps_to_its_room(text: str, room: int) -> None:
    assert "".join(split_parts(text)) == text
    assert tokens.count(compress(text, room)) <= room


def test_the_engine_counts_with_its_own_counter() -> None:
    with open_engine(counter="chars4") as engine:
        assert tokens.count(compress(REPORT, 60, counter=engine.store.data.rules.counter), "chars4") <= 60


def test_a_text_without_breaks_is_begun_and_ends_on_no_negation() -> None:
    text = "we must repair it on friday and not ship before that " * 20
    for room in range(5, 40):
        shorter = compress(text, room)
        assert shorter.endswith(" …")
        assert shorter.removesuffix(" …").split()[-1] not in ("not", "and")
