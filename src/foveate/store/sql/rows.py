"""Converts between records and rows, in the column order of `queries.sql`, and packs records for the history."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from foveate.records import make
from foveate.records.kinds import kind_of
from foveate.types import TRUST, Filters, Record, Scope


def filter_params(filters: Filters) -> dict[str, Any]:
    """Return the parameters of the fragment `matches_filters`. None means no condition."""
    trusts = TRUST[TRUST.index(filters.min_trust) :]
    return {
        "since": filters.since,
        "until": filters.until,
        "trusts": json.dumps(trusts) if filters.min_trust != TRUST[0] else None,
        "tags": json.dumps(filters.tags) if filters.tags else None,
        "only_kinds": json.dumps(filters.kinds) if filters.kinds else None,
        "event_types": json.dumps(filters.event_types) if filters.event_types else None,
        "entity_types": json.dumps(filters.entity_types) if filters.entity_types else None,
    }


def to_row(project: int, doc: int, record: Record) -> tuple[Any, ...]:
    """Return the row of a record. A summary that equals the text, and a micro that equals the summary, become NULL."""
    scope = record.scope
    sizes = record.tokens or {"full": 0, "summary": 0, "micro": 0}
    return (
        project, doc, record.id, record.kind, scope.user, scope.agent, scope.session, scope.task,
        kind_of(record.kind).is_private, record.text,
        None if record.summary == record.text else record.summary,
        None if record.micro == record.summary else record.micro,
        _to_json(record.tags), _to_json(record.entities), _to_json(record.paths),
        record.subject, record.attribute, record.status, record.outcome, record.salience, record.confidence,
        record.uses, record.wins, record.trust, record.pinned, record.origin, record.key,
        json.dumps(record.data, ensure_ascii=False) if record.data else None,
        record.created, record.updated, record.valid_from, record.valid_to, record.hash, record.version, record.sketch,
        sizes["full"], sizes["summary"], sizes["micro"],
    )  # fmt: skip


def from_row(row: Sequence[Any], project: str) -> Record:
    """Return the record of a row of `record_columns`."""
    (
        _, id, kind, user, agent, session, task, text, summary, micro, tags, entities, paths, subject, attribute, status,
        outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created, updated, valid_from, valid_to,
        hash_, version, sketch, full_tokens, summary_tokens, micro_tokens,
    ) = row  # fmt: skip
    summary = text if summary is None else summary
    return Record(
        id=id, kind=kind, scope=Scope(project, user, agent, session, task), text=text, summary=summary,
        micro=summary if micro is None else micro,
        tags=_from_json(tags), entities=_from_json(entities), paths=_from_json(paths), subject=subject, attribute=attribute,
        status=status, outcome=outcome, salience=salience, confidence=confidence, uses=uses, wins=wins, trust=trust,
        pinned=bool(pinned), origin=origin, key=key, data=json.loads(data) if data else {}, created=created,
        updated=updated, valid_from=valid_from, valid_to=valid_to, hash=hash_, version=version, sketch=sketch,
        tokens={"full": full_tokens, "summary": summary_tokens, "micro": micro_tokens},
    )  # fmt: skip


def _to_json(values: tuple[str, ...]) -> str | None:
    return json.dumps(values, ensure_ascii=False) if values else None


def _from_json(text: str | None) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def serialize_record(record: Record) -> bytes:
    """Return a record as the history stores it: compressed JSON."""
    return zlib.compress(make.dumps(record).encode(), 6)


def deserialize_record(data: bytes, scope: Scope, rules: make.Rules) -> Record:
    """Return a record from the history.

    Its text is not redacted again. It was when it was stored, and if the rules for secrets have changed since, the record
    would no longer be what it was.
    """
    return make.from_json(json.loads(zlib.decompress(data)), scope, rules, cleaned=True)
