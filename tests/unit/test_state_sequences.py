"""Whatever is done to a store, in whatever order: index and records say the same."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from foveate.errors import Conflict, InputError
from foveate.testing import FixedClock, counting_ids, embedder, engine
from property_settings import examples
from records import add_record

KINDS = st.sampled_from(["note", "fact", "event", "entity", "decision"])
SUBJECTS = st.sampled_from([None, "server", "editor"])
TRUSTS = st.sampled_from(["user", "agent", "tool"])


def word(n: int) -> str:
    """A rare word for every text."""
    return "zq" + "".join(chr(ord("b") + int(digit)) for digit in str(n)) + "k"


class Sequences(RuleBasedStateMachine):
    """Random verbs on an engine in memory, with a model of which words stand where."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FixedClock(step=1000)
        self.engine = engine(clock=self.clock, ids=counting_ids(), embedder=embedder(8))
        self.ids: list[str] = []
        self.forgotten: set[str] = set()
        self.texts = 0

    def teardown(self) -> None:
        self.engine.close()

    def new_text(self) -> str:
        self.texts += 1
        return f"Text with {word(self.texts)} and words that all of them share"

    def pick(self, n: int) -> str:
        return self.ids[n % len(self.ids)]

    @rule(kind=KINDS, subject=SUBJECTS, trust=TRUSTS, tag=st.booleans(), late=st.booleans())
    def add(self, kind: str, subject: str | None, trust: str, tag: bool, late: bool) -> None:
        values: dict[str, object] = {"trust": trust, "tags": ["tagged"] if tag else []}
        if kind == "fact" and subject:
            values |= {"subject": subject, "attribute": "state"}
            values |= {"valid_from": 1000 + self.texts} if late else {}
        self.ids.append(add_record(self.engine, kind, self.new_text(), **values).record.id)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50))
    def say_again(self, n: int) -> None:
        record = self.engine.get(self.pick(n))
        added = self.engine.add(record.kind, record.text, subject=record.subject, attribute=record.attribute)
        if added.record.id not in self.ids:
            self.ids.append(added.record.id)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50))
    def edit(self, n: int) -> None:
        id = self.pick(n)
        text = {} if self.engine.get(id).kind == "event" else {"text": self.new_text()}
        self.engine.edit(id, **text, salience=0.9)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50), subject=SUBJECTS)
    def move(self, n: int, subject: str | None) -> None:
        with suppress(Conflict):  # another value holds there
            self.engine.edit(self.pick(n), subject=subject, attribute="state" if subject else None)

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50), verb=st.sampled_from(["retire", "pin", "confirm"]))
    def change(self, n: int, verb: str) -> None:
        with suppress(InputError):  # what a tool said cannot be pinned
            id = self.pick(n)
            match verb:
                case "retire":
                    self.engine.edit(id, status="retired")
                case "pin":
                    self.engine.edit(id, pinned=True)
                case _:
                    self.engine.feedback(confirmed=[id])

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50))
    def undo(self, n: int) -> None:
        with suppress(Conflict):  # what it did to another record was changed again since
            self.engine.undo(self.pick(n))

    @precondition(lambda self: len(self.ids) > 1)
    @rule(n=st.integers(0, 50), m=st.integers(0, 50))
    def link(self, n: int, m: int) -> None:
        self.engine.link(self.pick(n), "near", self.pick(m))

    @precondition(lambda self: self.ids)
    @rule(n=st.integers(0, 50))
    def forget(self, n: int) -> None:
        id = self.pick(n)
        self.engine.forget(id)
        self.ids.remove(id)
        self.forgotten.add(id)

    @invariant()
    def index_says_what_the_records_say(self) -> None:
        with self.engine.store.data.reader() as reader:
            records = {record.id: record for record in reader.records()}
            links = list(reader.all_links())
        assert set(records) == set(self.ids)
        assert all(link.src in records and link.dst in records for link in links)
        for record in records.values():
            rare = next(part for part in record.text.split() if part.startswith("zq"))
            there = {hit.record.id for hit in self.engine.search(rare, limit=50)}
            alike = {r.id for r in records.values() if rare in r.text.split() and r.status != "retired"}
            assert there == alike, record.status
        health = self.engine.store.health()
        assert health.ok, health.problems

    @invariant()
    def one_value_of_an_attribute_holds_at_most(self) -> None:
        with self.engine.store.data.reader() as reader:
            active = [r.subject for r in reader.records() if r.kind == "fact" and r.attribute and r.status == "active"]
        assert len(active) == len(set(active))

    @invariant()
    def counts_say_what_is_there(self) -> None:
        with self.engine.store.data.project_reader() as reader:
            counts = reader.counts()
            total = sum(number for kinds in counts.records.values() for number in kinds.values())
            assert total == len(self.ids)


TestSequences = Sequences.TestCase
TestSequences.settings = settings(examples(30), stateful_step_count=25)
