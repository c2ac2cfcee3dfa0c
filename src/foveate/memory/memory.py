"""Operations on single records: add, edit, undo, forget and search, and checks of planned actions.

`transfer` exports and imports whole stores, `maintenance` runs lifecycles, and `backfill` adds vectors and summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from foveate.clock import When, parse_time
from foveate.errors import InputError, NotFound, near
from foveate.options import RECORD_COLUMNS, RECORD_FIELDS, RecordColumns, RecordFields, refuse_text, refuse_unknown
from foveate.records import lifecycle
from foveate.records import make as records
from foveate.records.corrections import corrects
from foveate.records.instructions import match_rule
from foveate.records.kinds import CONFLICTS_WITH, HANDOFF_OF, LEARNED_FROM, PROMOTED_FROM, data_problems, kind_of
from foveate.records.merge import is_later_write
from foveate.records.triggers import CensorMatch
from foveate.store.protocol import AddResult, ForgetResult, Hit, Query, Reader, Scrub, SearchGroup
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.text import analysis
from foveate.text.query_expansion import expand_query, synonyms_only
from foveate.text.query_terms import weighted_query_terms
from foveate.types import TRUST, Change, Filters, Link, Record, Scope

PAGE_SIZE = 500
"""Records that `list_records` reads in one snapshot."""

CONFLICT_QUERY_TERMS = 4
"""Longest words of a new statement, by which contradicting statements are searched. Long words are seldom common ones."""

SEARCH_FIELDS = {"text": 1.0, "summary": 0.5, "tags": 1.5, "subject": 1.5, "entities": 1.0, "paths": 1.0}

_CARRIED_COLUMNS = {
    "tags", "entities", "subject", "attribute", "status", "outcome", "salience", "confidence", "uses", "wins", "trust",
    "pinned", "origin", "key", "created", "valid_from", "valid_to",
}  # fmt: skip
"""Columns that an edit keeps unless it sets them."""


class Memory:
    """Reads and writes records in a project's store and in the user's personal store, if there is one."""

    def __init__(
        self,
        data: ScopedStore,
        *,
        thresholds: lifecycle.Thresholds = lifecycle.DEFAULT_THRESHOLDS,
        scrub: Scrub | None = None,
    ) -> None:
        self.data = data
        self.thresholds = thresholds
        self._scrub = scrub

    # --- write -------------------------------------------------------------------------------------------------

    @retry_interrupted
    def add(
        self,
        kind: str,
        text: str,
        *,
        personal: bool = False,
        scope: Scope | None = None,
        **fields: Unpack[RecordColumns],
    ) -> AddResult:
        """Store one record. Known content is confirmed, and a keyed fact supersedes the older value."""
        refuse_unknown(fields, RECORD_COLUMNS, "add")
        refuse_text_lists(fields)
        record = self.data.make(kind, text, fields, self.data.record_scope(scope, personal=personal))
        # Embedded before the transaction begins, so that a slow embedder does not keep other writers waiting.
        vector = self._vector(record.text)
        with self.data.writer(scope, personal=personal) as writer:
            contradicted = contradicted_by(writer, record)
            added = writer.add(record, vector)
            if added.action != "added" or not contradicted:
                return added
            for other in contradicted:
                pair = (record.id, other.id) if is_newer(record, other) else (other.id, record.id)
                writer.link(Link(pair[0], CONFLICTS_WITH, pair[1]))
        warnings = tuple(
            f"It may conflict with {other.id} ({other.micro}). Retire one, or give both a subject and an attribute."
            for other in contradicted
        )
        return replace(added, affected=tuple(other.id for other in contradicted), warnings=warnings)

    def edit(
        self,
        id: str,
        *,
        text: str | None = None,
        status: str | None = None,
        result: str | None = None,
        expect_version: int | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Change a record's text or fields. Setting an outcome counts as a use of the record."""
        refuse_unknown(fields, RECORD_FIELDS, "edit")
        if status not in (None, "active", "retired"):
            raise InputError(f"status must be 'active' or 'retired', got {status!r}.")
        refuse_text_lists(fields)
        content: dict[str, Any] = dict(fields)
        outcome, pinned = content.pop("outcome", None), content.pop("pinned", None)
        if result and outcome is None:
            raise InputError("result describes an outcome. Pass outcome as well.")
        if text is None and not content and outcome is None and pinned is None and status is None:
            raise InputError("Nothing to change. Pass text, status, outcome, pinned or another field.")

        def changed(record: Record, now: int) -> Record:
            if text is not None or content:
                record = self._remade(record, text, content, now)
            if outcome is not None:
                record = self._with_outcome(record, outcome, result or "", now)
            if pinned is not None:
                problems = records.trust_problems(kind_of(record.kind), record.trust, pinned)
                if problems:
                    raise InputError(problems)
                record = replace(record, pinned=pinned, updated=now)
            return record if status is None else replace(record, status=status, updated=now)

        vector = self._vector(records.clean(text, self.data.rules.allow)) if text is not None else None
        verb = _verb_of(bool(content) or text is not None, outcome, pinned, status)
        return self._change(id, verb, changed, expect_version, vector)

    def _remade(self, record: Record, text: str | None, content: Mapping[str, Any], now: int) -> Record:
        _refuse_higher_trust(record, content.get("trust"))
        new_text = record.text if text is None else text
        if problems := records.data_type_problems(kind_of(record.kind), content.get("data") or {}):
            raise InputError(problems)
        carried = _carried_values(record, content, new_text=new_text != record.text)
        data = {**carried["data"], **(content.get("data") or {})}
        # A kind field that is set to None is removed.
        values = {**carried, **content, "data": {name: value for name, value in data.items() if value is not None}}
        made = records.make(
            record.kind, new_text, scope=record.scope, id=record.id, now=now, rules=self.data.rules, **values
        )
        return replace(made, version=record.version)

    def _with_outcome(self, record: Record, outcome: str, result: str, now: int) -> Record:
        """Return the record with an outcome. A pending one is not counted: there is no success or failure yet."""
        problems = records.column_problems({"outcome": outcome})
        if problems:
            raise InputError(problems)
        data = {**record.data, **({"result": records.clean(result, self.data.rules.allow)} if result else {})}
        problems = data_problems(kind_of(record.kind), data)
        if problems:
            raise InputError(problems)
        used, successful = int(outcome != "pending"), int(outcome == "success")
        return replace(
            record, outcome=outcome, uses=record.uses + used, wins=record.wins + successful, data=data, updated=now
        )

    def confirm(self, id: str) -> Record:
        """Count a confirmation: the record is still true."""

        def changed(record: Record, now: int) -> Record:
            count = int(record.data.get("confirmations", 0)) + 1
            return replace(record, data={**record.data, "confirmations": count}, updated=now)

        return self._change(id, "confirm", changed)

    def report_false_alarm(self, id: str) -> Record:
        """Count a false alarm of a censor. Maintenance withdraws a censor that is mostly wrong."""

        def changed(record: Record, now: int) -> Record:
            if record.kind != "censor":
                raise InputError(f"Only a censor can raise a false alarm, but {id!r} is a {record.kind}.")
            alarms = int(record.data.get("false_alarms", 0)) + 1
            return replace(record, data={**record.data, "false_alarms": alarms}, updated=now)

        return self._change(id, "false alarm", changed)

    def count_uses(self, ids: Sequence[str], *, successful: bool = False) -> None:
        """Count one use of each record that still exists. It changes no content, so there is nothing to undo."""
        found = self.get_many(ids)
        for project in sorted({record.scope.project for record in found.values()}):
            self._count_uses([record for record in found.values() if record.scope.project == project], successful)

    @retry_interrupted
    def _count_uses(self, used: Sequence[Record], successful: bool) -> None:
        with self.data.writer_of(used[0]) as writer:
            writer.count_uses([record.id for record in used], success=successful)

    @retry_interrupted
    def promote(self, id: str, *, kind: str | None = None) -> Record:
        """Raise a record's trust to `user`, after a person has read it.

        With another kind, its words become a new record of that kind, linked to the old one, which is retired.
        """
        record = self.get(id)
        if record.status != "active":
            raise InputError(f"Only an active record can be accepted, but {id!r} is {record.status}.")
        if kind is None or kind == record.kind:
            # The person has read the text. The short lengths are made again, because they could say something else.
            return self._change(id, "promote", lambda r, now: replace(r, trust="user", summary="", micro="", updated=now))
        fields = {name: value for name, value in record.data.items() if name in kind_of(kind).fields}
        values = {"data": fields, "tags": record.tags, "entities": record.entities, "subject": record.subject}
        made = self.data.make(
            kind, record.text, {**values, "origin": record.origin or id}, replace(record.scope, session=None, task=None)
        )
        vector = self._vector(made.text)
        with self.data.writer_of(record) as writer, writer.undo_group():
            promoted = writer.add(made, vector).record
            writer.change(replace(record, status="retired", updated=made.updated), "promote", expect_version=record.version)
            writer.link(Link(promoted.id, PROMOTED_FROM, id))
        return promoted

    def undo(self, id: str) -> list[Record]:
        """Undo the last change to a record, with its effects on other records."""
        undone = self._undo(id)
        self._embed_again(undone)
        return undone

    @retry_interrupted
    def _undo(self, id: str) -> list[Record]:
        with self.data.writer_of(self.get(id)) as writer:
            return writer.undo(id, self.data.clock())

    @retry_interrupted
    def link(self, source: str, name: str, target: str, weight: float = 1.0) -> Link:
        """Link two records by their ids."""
        link = Link(source, name, target, weight)
        with self.data.writer_of(self.get(source)) as writer:
            writer.link(link)
        return link

    def forget(self, ids: Sequence[str]) -> ForgetResult:
        """Delete records from every table, index, version and receipt."""
        if not ids:
            raise InputError("No record to forget. Pass at least one id.")
        found = self.get_many(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            raise NotFound(f"No record {missing[0]!r} in this scope. Nothing was forgotten.")
        # A raw handoff contains the words of the records that were learned from it, so it is deleted with them.
        raw = self._raw_handoffs(found)
        personal = [id for id in ids if self.data.is_personal(found[id])]
        shared = [*(id for id in ids if id not in personal), *(id for id in raw if id not in ids)]
        # The project's store gets the ids of personal records, too: its receipts may show them.
        done = [retry_interrupted(self.data.store.forget)(self.data.scope, shared, self._scrub, other_store_ids=personal)]
        if personal and self.data.personal is not None:
            place = self.data.record_scope(personal=True)
            done.append(retry_interrupted(self.data.personal.forget)(place, personal, self._scrub))
        counts: dict[str, int] = {}
        for part in done:
            for table, number in part.counts.items():
                counts[table] = counts.get(table, 0) + number
        notes = [f"The handoff {id!r} contained its words and was deleted with it." for id in raw]
        return ForgetResult(counts, (*notes, *(warning for part in done for warning in part.warnings)))

    @retry_interrupted
    def _raw_handoffs(self, found: Mapping[str, Record]) -> list[str]:
        """Return the handoffs that contain the records: those of a task, and those that a record was learned from."""
        with self.data.project_reader() as reader:
            learned = {link.dst: found[link.src] for link in reader.links(list(found), [LEARNED_FROM])}
            tasks = [id for id, record in found.items() if record.kind == "task"]
            links = reader.links([*tasks, *learned], [HANDOFF_OF], incoming=True)
            texts = {id: _letters(record.text) for id, record in reader.get([link.src for link in links]).items()}
        return [
            link.src
            for link in links
            if link.src not in found
            and (link.dst in tasks or any(_letters(record.text) in texts[link.src] for record in found.values()))
        ]

    # --- read --------------------------------------------------------------------------------------------------

    @retry_interrupted
    def get(self, id: str, *, as_of: When | None = None) -> Record:
        """Return a record as it is, or as it was at a time."""
        time = None if as_of is None else parse_time(as_of, "as_of", current=self.data.clock())
        with self.data.reader() as reader:
            record = reader.get([id]).get(id)
            if record is None:
                raise NotFound(f"No record {id!r} in this scope. `foveate search` finds records by their words.")
            if time is None:
                return record
            if record.created > time:
                raise NotFound(f"{id!r} did not exist at that time.")
            later = [step for step in reader.history(id) if step.at > time and step.before is not None]
            return later[0].before or record if later else record

    @retry_interrupted
    def get_many(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return the records of these ids that exist in this scope."""
        with self.data.reader() as reader:
            return reader.get(ids)

    @retry_interrupted
    def history(self, id: str) -> list[Change]:
        """List every version of a record with the operation that changed it, oldest first."""
        with self.data.reader() as reader:
            return reader.history(id)

    @retry_interrupted
    def search(
        self,
        query: str,
        *,
        kinds: Sequence[str] = (),
        limit: int = 10,
        filters: Filters | None = None,
        scope: Scope | None = None,
    ) -> list[Hit]:
        """Find records by their words, best first. Superseded and retired ones come after active ones."""
        refuse_text(kinds, "kinds")
        for kind in (*kinds, *(filters.kinds if filters else ())):
            kind_of(kind)
        expansion = synonyms_only(expand_query(query))
        plan = Query(weighted_query_terms(query, self.data.clock()), SEARCH_FIELDS, None, filters or Filters(), expansion)
        with self.data.reader(scope) as reader:
            hits = reader.search(plan, [SearchGroup(tuple(kinds), limit)])[0]
        return sorted(hits, key=lambda hit: hit.record.status != "active")[:limit]

    def list_records(
        self,
        *,
        filters: Filters | None = None,
        status: str | None = "active",
        limit: int | None = None,
        scope: Scope | None = None,
    ) -> Iterator[Record]:
        """Iterate over the project's records, newest first."""
        after, left = 0, limit
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
            page, after = self.page(size, filters=filters, status=status, after=after, scope=scope)
            yield from page
            left = None if left is None else left - len(page)
            if not after:
                return

    @retry_interrupted
    def page(
        self,
        limit: int,
        *,
        filters: Filters | None = None,
        status: str | None = None,
        after: int = 0,
        scope: Scope | None = None,
    ) -> tuple[list[Record], int]:
        """Return one page of records, newest first, and the cursor of the next page; 0 if there is none."""
        for kind in filters.kinds if filters else ():
            kind_of(kind)
        with self.data.project_reader(scope) as reader:
            return reader.page(limit, filters or Filters(), status=status, after=after)

    def check(self, text: str, *, dry_run: bool = False) -> list[CensorMatch]:
        """Return the valid censors and instructions that a planned action violates, blocks first.

        An instruction is a warning. A dry run does not count the censors.
        """
        if not isinstance(text, str) or not text.strip():
            raise InputError("The action to check is empty. Describe what is planned.")
        now = self.data.clock()
        with self.data.reader() as reader:
            rules = reader.always_on(("censor", "instruction"))
            valid = [rule for rule in rules if not lifecycle.invalidity(rule, now)]
        matches = [match for rule in valid if (match := match_rule(rule, text))]
        for match in () if dry_run else (match for match in matches if match.censor.kind == "censor"):
            self._change(match.censor.id, "trip", lambda record, now: replace(record, uses=record.uses + 1, updated=now))
        return sorted(matches, key=lambda match: match.action != "block")

    def with_stage(self, record: Record, at: When | None = None) -> Record:
        """Return a record with its lifecycle stage, now or at a time."""
        now = self.data.clock()
        time = now if at is None else parse_time(at, "as_of", current=now)
        return replace(record, stage=lifecycle.stage(record, time, self.thresholds))

    # --- helpers -----------------------------------------------------------------------------------------------

    def _vector(self, text: str) -> Sequence[float] | None:
        return self.data.vectors([text])[0]

    @retry_interrupted
    def _embed_again(self, changed: Sequence[Record]) -> None:
        """Store vectors of restored texts, unless another writer changed the records meanwhile."""
        vectors = self.data.vectors([record.text for record in changed])
        if not any(vector is not None for vector in vectors):
            return
        with self.data.writer_of(changed[0]) as writer:
            current = writer.get([record.id for record in changed])
            for record, vector in zip(changed, vectors, strict=True):
                if vector is not None and record.id in current and current[record.id].version == record.version:
                    writer.put_vector(record.id, vector)

    @retry_interrupted
    def _change(
        self,
        id: str,
        verb: str,
        changed: Callable[[Record, int], Record],
        expect_version: int | None = None,
        vector: Sequence[float] | None = None,
    ) -> Record:
        with self.data.writer_of(self.get(id)) as writer:
            record = writer.get([id])[id]
            after = records.finish(changed(record, self.data.clock()), self.data.rules)
            is_same = replace(after, updated=record.updated) == record
            if is_same and expect_version in (None, record.version):
                return record
            return writer.change(
                after, verb, expect_version=expect_version, vector=vector if after.text != record.text else None
            )


def refuse_text_lists(fields: Mapping[str, Any]) -> None:
    """Raise an error if a list of texts was passed as one text."""
    for name in ("tags", "entities", "paths"):
        refuse_text(fields.get(name), name)


def contradicted_by(reader: Reader, record: Record) -> list[Record]:
    """Return the active statements that a new one corrects, or is corrected by. A keyed fact supersedes instead."""
    if not kind_of(record.kind).is_keyed or record.attribute is not None:
        return []
    longest = sorted(set(analysis.terms(record.text)), key=lambda term: (-len(term), term))[:CONFLICT_QUERY_TERMS]
    query = Query(dict.fromkeys(longest, 1.0), SEARCH_FIELDS, None, Filters())
    hits = reader.search(query, [SearchGroup((record.kind,), 10)])[0]
    others = [hit.record for hit in hits if hit.record.status == "active" and hit.record.attribute is None]
    pairs = [
        (record, other) if is_newer(record, other) else (other, record) for other in others if other.hash != record.hash
    ]
    return [older if newer is record else newer for newer, older in pairs if corrects(newer.text, older.text)]


def is_newer(new: Record, existing: Record) -> bool:
    """Return whether a record that is being written is newer than an existing one: by its time only if a call named one."""
    return is_later_write(new, existing) or new.valid_from >= existing.valid_from


def unknown_project(data: ScopedStore, *, suggest: bool) -> str:
    """Return a warning if the store has no record of this project. `suggest` adds similar names.

    A project is created by its first record, so a new project is unknown, too. Names of other projects are not for every
    caller: the service suggests none to a token of one project.
    """
    name, known = data.scope.project, data.store.projects()
    if not known or name in known:
        return ""
    return f"The store has no project {name!r}." + (near(name, known) if suggest else "")


def _verb_of(content: bool, outcome: str | None, pinned: bool | None, status: str | None) -> str:
    """Return the operation that the history shows for an edit."""
    if status == "retired":
        return "retire"
    if content:
        return "edit"
    if outcome is not None:
        return "outcome"
    if pinned is not None:
        return "pin" if pinned else "unpin"
    return "edit"


def _carried_values(record: Record, content: Mapping[str, Any], *, new_text: bool) -> dict[str, Any]:
    """Return the values that an edit does not name. A new text gets new short lengths, unless they come with it."""
    columns = _CARRIED_COLUMNS - content.keys()
    carried = {name: getattr(record, name) for name in columns}
    if not new_text:
        carried |= {name: getattr(record, name) for name in ("summary", "micro", "paths")}
    elif record.kind == "entity" and record.data.get("name") == record.text:
        return {**carried, "data": {name: value for name, value in record.data.items() if name != "name"}}
    return {**carried, "data": dict(record.data)}


def _refuse_higher_trust(record: Record, trust: Any) -> None:
    """Raise if an edit would make an untrusted text trusted. Only the inbox can do that, and it leaves a trace."""
    higher = trust in TRUST and TRUST.index(trust) > TRUST.index(record.trust)
    if higher and record.trust not in ("agent", "user"):
        raise InputError(
            f"An edit cannot raise the trust of {record.id!r}. Read it, then run `foveate inbox accept {record.id}`."
        )


def _letters(text: str) -> str:
    """Return only the letters and digits, so that quotes, line breaks and escapes do not matter in a comparison."""
    return "".join(character for character in text.casefold() if character.isalnum())
