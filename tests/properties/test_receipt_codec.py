"""A receipt survives its JSON form, and so does the line of one, whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.profiles.codec import profile_to_json
from foveate.pipeline.request_summary import FORGOTTEN, RequestSummary
from foveate.pipeline.sources import SourceReport
from foveate.receipts.codec import (
    from_json,
    pack,
    scrub,
    summary_from_json,
    summary_to_json,
    to_json,
    unpack,
)
from foveate.receipts.parts import (
    AnyCandidate,
    KeptCandidate,
    LeftOutCandidate,
    Notes,
    RecordRef,
    RefreshNote,
)
from foveate.receipts.receipt import Receipt
from foveate.receipts.summary import summary_of
from foveate.types import (
    LEVELS,
    TRUST,
    Budget,
    Filters,
    Frame,
    Intent,
    Prefix,
    Profile,
    Reason,
    Scope,
    Signals,
    Slot,
    SlotBudget,
)
from property_settings import examples

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
ids = st.sampled_from([f"{kind}_{n}" for kind in ("fact", "task", "entity") for n in range(4)])
counts = st.integers(0, 10_000)
shares = st.floats(0, 1, allow_nan=False)
maybe = st.booleans()


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


def mapping(keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Mapping[Any, Any]]:
    return st.dictionaries(keys, values, max_size=3)


levels, trusts = st.sampled_from(LEVELS), st.sampled_from(TRUST)
refs = st.builds(RecordRef, ids, counts)
common: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "version": counts,
    "hash": names,
    "kind": names,
    "slot": names,
    "source": names,
    "features": mapping(names, shares),
    "score": shares,
    "overruled_by": optional(ids),
    "inherited_from": optional(refs),
    "stale": maybe,
    "text": optional(names),
    "versions": optional(st.tuples(counts, counts)),
    "conflict": optional(refs),
}
candidates: st.SearchStrategy[AnyCandidate] = st.one_of(
    st.builds(KeptCandidate, **common, level=levels, tokens=counts, rank=counts, in_parts=maybe),
    st.builds(
        LeftOutCandidate,
        **common,
        reason=st.sampled_from(get_args(Reason)),
        detail=names | ids,
        needs_tokens=counts,
        needs_relevance=shares,
    ),
)
scopes = st.builds(Scope, names, optional(names), optional(names), optional(names), optional(names))
filters = st.builds(
    Filters, since=optional(counts), kinds=tuples(names), tags=tuples(names), exclude=tuples(ids), min_trust=trusts
)
requests = st.builds(
    RequestSummary,
    query=names,
    scope=scopes,
    now=counts,
    budget=optional(counts),
    profile=names,
    agent=optional(names),
    frame=optional(names),
    code_query=optional(names),
    task=optional(ids),
    counter=names,
    filters=filters,
    extra=mapping(names, tuples(names)),
    overrides=mapping(names, counts),
)
signals = st.builds(
    Signals,
    keywords=tuples(names),
    terms=mapping(names, shares),
    entities=mapping(ids, st.just("")),
    intent=st.sampled_from(get_args(Intent)),
    frame=names,
)
slots = st.builds(
    Slot,
    name=names,
    source=names,
    extra_sources=tuples(st.tuples(names, counts)),
    kinds=tuples(names),
    heading=names,
    tokens=optional(counts),
    share=optional(shares),
    max_items=optional(counts),
    min_relevance=shares,
    max_candidates=optional(counts),
    level=levels,
    max_level=levels,
    keep=maybe,
    stable=maybe,
    order=counts,
    pinned_only=maybe,
    text=names,
    min_trust=trusts,
    field=names,
    required=names,
)
frames = st.builds(
    Frame, title=names, questions=tuples(names), domains=tuples(names), triggers=mapping(names, tuples(names)), order=counts
)
profiles = st.builds(
    Profile,
    name=names,
    total=counts,
    written_for=counts,
    reserve=counts,
    slots=tuples(slots),
    weights=mapping(names, shares),
    fields=mapping(names, shares),
    choose_frame=maybe,
    frame=optional(frames),
    layers=mapping(names, names),
)
ledgers = st.builds(
    Budget,
    total=counts,
    reserve=counts,
    used=counts,
    framing=counts,
    slots=tuples(st.builds(SlotBudget, name=names, granted=counts, base=counts, used=counts, items=counts)),
)
notes = st.builds(
    Notes,
    turns=counts,
    refresh=optional(st.builds(RefreshNote, names, names)),
    used=optional(tuples(ids)),
    marks=optional(mapping(ids, st.sampled_from(["useful", "wrong", "outdated"]))),
)
reports = st.builds(SourceReport, names, tuples(names), counts, shares, names, optional(counts), names)
receipts = st.builds(
    Receipt,
    id=names,
    request=requests,
    signals=signals,
    profile=profiles,
    revision=names,
    renderer=counts,
    measured_by=names,
    sources=tuples(reports),
    candidates=tuples(candidates),
    budget=ledgers,
    prefix=st.builds(Prefix, names, counts, counts),
    text_hash=names,
    warnings=tuples(names),
    ms=shares,
    notes=notes,
    forgotten=counts,
)


@given(profiles.filter(lambda profile: bool(profile.slots and profile.frame)))
@examples(20)
def test_every_field_of_a_profile_is_stored(profile: Profile) -> None:
    document = profile_to_json(profile)
    for part, stored in ((profile, document), (profile.slots[0], document["slots"][0]), (profile.frame, document["frame"])):
        assert list(stored) == [each.name for each in fields(part)]


@given(receipts)
@examples(200)
def test_a_receipt_is_the_same_after_its_json_form(receipt: Receipt) -> None:
    text = json.dumps(to_json(receipt))
    assert from_json(json.loads(text)) == receipt
    assert json.dumps(to_json(from_json(json.loads(text)))) == text
    assert unpack(pack(receipt).body) == receipt


@given(receipts)
@examples(100)
def test_a_line_is_the_same_after_its_json_form(receipt: Receipt) -> None:
    line = summary_of(receipt)
    assert summary_from_json(json.dumps(summary_to_json(line))) == line


@given(receipts, st.frozensets(ids, min_size=1, max_size=4))
@examples(200)
def test_a_scrubbed_receipt_has_no_trace_of_the_records(receipt: Receipt, gone: frozenset[str]) -> None:
    receipt = replace(receipt, request=replace(receipt.request, task=None))  # its id stays: it says whose context it was
    cleaned = scrub(pack(receipt).body, gone)
    if cleaned is None:
        assert receipt.without_records(gone) is None
        return
    left = unpack(cleaned[0])
    document = to_json(left)
    assert not any(f'"{id}"' in json.dumps(document) for id in gone)
    assert (left.request.query, document["signals"]) == (FORGOTTEN, {})
    assert left.forgotten == receipt.forgotten + len(receipt.candidates) - len(left.candidates)
    assert summary_from_json(cleaned[1]) == summary_of(left)
