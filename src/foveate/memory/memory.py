"""Memory: the verbs on state, the same words in code and on the command line.

It turns caller's values into records and hands them to a store; it computes no context. `Engine` is a `Memory` that can
also project.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from foveate.clock import Clock, Ids
from foveate.errors import InputError, NotFound, near
from foveate.memory import embedding
from foveate.memory.embedding import Embedded
from foveate.records import make as records
from foveate.records.conflict import conflicting
from foveate.records.kinds import kind_of, problems_in
from foveate.records.links import CONFLICTS_WITH, HANDOFF_OF, LEARNED_FROM, PROMOTED_FROM
from foveate.records.make import Rules
from foveate.store.chain import Chain
from foveate.store.protocol import Added, Change, Embed, Forgotten, Health, Hit, Query, Reader, Scrub, Store, Want
from foveate.store.retry import retried
from foveate.text import analysis
from foveate.text.query_expansion import related, saying_the_same
from foveate.text.query_terms import asked
from foveate.types import TRUST, Filters, Link, Record, Scope

BATCH = 5000
"""Records in one transaction of a bulk write: an interrupted import keeps whole batches. Sorted together, postings cost
half of what they do by the thousand."""

EMBED_BATCH = 256
"""Records embedded at once: what is lost where it is interrupted."""

OWN_PROJECT = "~"
"""The project of the user's own store."""

NO_EMBEDDER = 'There is no embedder. Set one in .foveate/config.toml: embedder = "model2vec:...".'

SEARCH_FIELDS = {"text": 1.0, "summary": 0.5, "tags": 1.5, "subject": 1.5, "entities": 1.0, "paths": 1.0}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    added: int
    known: int
    links: int


class Memory:
    """State in a project's store and, where there is one, the user's own."""

    def __init__(
        self,
        store: Store,
        *,
        scope: Scope,
        rules: Rules,
        clock: Clock,
        ids: Ids,
        own: Store | None = None,
        vectors: Embed | None = None,
        scrub: Scrub | None = None,
    ) -> None:
        self.store = store
        self.scope = scope
        self.own = own
        self.rules = rules
        self.clock = clock
        self.ids = ids
        self._vectors = vectors
        self._scrub = scrub
        self._sees_projects = True

    # --- write -------------------------------------------------------------------------------------------------

    @retried
    def add(self, kind: str, text: str, *, own: bool = False, scope: Scope | None = None, **values: Any) -> Added:
        """Keep something. Known content is confirmed, a keyed fact supersedes the older value."""
        record = self.make(kind, text, self._place(own, scope), values)
        vector = self._vector(record.text)  # before the transaction: an embedder may take its time
        with self._target(own).write(record.scope) as writer:
            against = contradicted(writer, record)
            added = writer.add(record, vector)
            if added.action != "added" or not against:
                return added
            for other in against:
                writer.link(Link(record.id, CONFLICTS_WITH, other.id))
        said = tuple(
            f"It seems to conflict with {other.id} ({other.micro}). Retire one, or give both a subject and an attribute."
            for other in against
        )
        return replace(added, affected=tuple(other.id for other in against), warnings=said)

    def add_many(self, rows: Iterable[tuple[str, str, dict[str, Any]]], scope: Scope | None = None) -> list[str]:
        """Keep many (kind, text, values), in large transactions; the ids under which they are kept."""
        where = scope or self.scope
        return [id for batch in _batches(rows, BATCH) for id in self._add_batch(batch, where)]

    @retried
    def _add_batch(self, batch: Sequence[tuple[str, str, dict[str, Any]]], where: Scope) -> list[str]:
        # Embedded as they are kept, without secrets. Without an embedder each is made just before it is written, which
        # spares analysing it twice.
        made = (self.make(kind, text, where, values) for kind, text, values in batch)
        kept = list(made) if self._vectors else made
        vectors = self.embedded([record.text for record in kept]) if isinstance(kept, list) else repeat(None)
        with self.store.write(where) as writer:
            return [writer.add(record, vector).record.id for record, vector in zip(kept, vectors, strict=False)]

    @retried
    def edit(self, id: str, *, expect: int | None = None, **values: Any) -> Record:
        """Change a record's text or fields; everything that follows from them is worked out again."""

        def changed(record: Record, now: int) -> Record:
            _refuse_raise(record, values.get("trust"))
            text = values.pop("text", record.text)
            kept = _kept(record, values, new_text=text != record.text)
            made = records.make(
                record.kind, text, scope=record.scope, id=id, now=now, rules=self.rules, **{**kept, **values}
            )
            return replace(made, version=record.version)

        vector = self._vector(records.clean(str(values["text"]), self.rules.allow)) if "text" in values else None
        return self._change(id, "edit", changed, expect, vector)

    def outcome(self, id: str, outcome: str, result: str = "") -> Record:
        """Record how it turned out, and in words what came of it: its lines say so from now on.

        Every use counts towards the success rate; while an outcome is pending, there is nothing to count.
        """
        used, won = int(outcome != "pending"), int(outcome == "success")

        def changed(record: Record, now: int) -> Record:
            problems = records.column_problems({"outcome": outcome})
            if problems:
                raise InputError(problems)
            data = {**record.data, **({"result": records.clean(result, self.rules.allow)} if result else {})}
            wrong = problems_in(kind_of(record.kind), data)
            if wrong:
                raise InputError(wrong)
            return replace(record, outcome=outcome, uses=record.uses + used, wins=record.wins + won, data=data, updated=now)

        return self._change(id, "outcome", changed)

    def count_uses(self, ids: Sequence[str], *, won: bool = False) -> None:
        """Count one use of each record that is still here: no change of what it says, so there is nothing to undo."""
        found = self._seen(ids)
        for project in sorted({record.scope.project for record in found.values()}):
            self._count_uses([id for id, record in found.items() if record.scope.project == project], won)

    @retried
    def _count_uses(self, held: Sequence[str], won: bool) -> None:
        with self._holder(held[0]).write(self._scope_of(held[0])) as writer:
            writer.count_uses(held, won=won)

    def confirm(self, id: str) -> Record:
        """Say that it still holds."""

        def changed(record: Record, now: int) -> Record:
            count = int(record.data.get("confirmations", 0)) + 1
            return replace(record, data={**record.data, "confirmations": count}, updated=now)

        return self._change(id, "confirm", changed)

    def pin(self, id: str, *, pinned: bool = True) -> Record:
        """Have it in every context of its scope, whatever the question."""

        def changed(record: Record, now: int) -> Record:
            problems = records.trust_problems(kind_of(record.kind), record.trust, pinned)
            if problems:
                raise InputError(problems)
            return replace(record, pinned=pinned, updated=now)

        return self._change(id, "pin" if pinned else "unpin", changed)

    @retried
    def promote(self, id: str, *, kind: str | None = None) -> Record:
        """A person has read it and vouches for it: its trust becomes `user`.

        With a kind, its words become a record of that kind, which says where it came from, and the old one is retired.
        """
        record = self.get(id)
        if record.status != "active":
            raise InputError(f"{id!r} is {record.status}; only what is in use can be promoted.")
        if kind is None or kind == record.kind:  # its short lengths are made anew: they could say something else
            return self._change(id, "promote", lambda r, now: replace(r, trust="user", summary="", micro="", updated=now))
        fields = {name: value for name, value in record.data.items() if name in kind_of(kind).fields}
        values = {"data": fields, "tags": record.tags, "entities": record.entities, "subject": record.subject}
        made = self.make(
            kind, record.text, replace(record.scope, session=None, task=None), {**values, "origin": record.origin or id}
        )
        vector = self._vector(made.text)
        with self._holder(id).write(self._scope_of(id)) as writer, writer.together():
            new = writer.add(made, vector).record
            writer.change(replace(record, status="retired", updated=made.updated), "promote", expect=record.version)
            writer.link(Link(new.id, PROMOTED_FROM, id))
        return new

    def retire(self, id: str) -> Record:
        """Take it out of use; it stays on record."""
        return self._change(id, "retire", lambda r, now: replace(r, status="retired", updated=now))

    def undo(self, id: str) -> list[Record]:
        """Take back the last change of a record, and what that change did to others."""
        undone = self._undone(id)
        self._embed_again(undone)
        return undone

    @retried
    def _undone(self, id: str) -> list[Record]:
        with self._holder(id).write(self._scope_of(id)) as writer:
            return writer.undo(id, self.clock())

    @retried
    def link(self, src: str, name: str, dst: str, weight: float = 1.0) -> Link:
        link = Link(src, name, dst, weight)
        with self._holder(src).write(self._scope_of(src)) as writer:
            writer.link(link)
        return link

    def forget(self, ids: Sequence[str]) -> Forgotten:
        """Remove records for good: every table, index, version, receipt and byte."""
        if not ids:
            raise InputError("Name at least one record to forget.")
        found = self._seen(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            raise NotFound(f"There is no record {missing[0]!r} in this scope; nothing was forgotten.")
        raw = self._raw_input(found)
        mine = [id for id in ids if found[id].scope.project != OWN_PROJECT or self.own is None]
        theirs = [id for id in ids if id not in mine]
        mine += [id for id in raw if id not in mine]
        done = [retried(self.store.forget)(self.scope, mine, self._scrub, elsewhere=theirs)]
        if theirs and self.own is not None:
            done.append(retried(self.own.forget)(self._place(True), theirs, self._scrub))
        counts: dict[str, int] = {}
        for part in done:
            for table, number in part.counts.items():
                counts[table] = counts.get(table, 0) + number
        said = [f"The handoff {id!r} held its words and was forgotten with it." for id in raw]
        return Forgotten(counts, (*said, *(warning for part in done for warning in part.warnings)))

    @retried
    def _raw_input(self, found: Mapping[str, Record]) -> list[str]:
        """Handoffs that hold what is to be forgotten: those of a task, and those that a record was learned from."""
        with self.store.read(self.scope) as reader:
            taught = {link.dst: found[link.src] for link in reader.links(list(found), [LEARNED_FROM])}
            tasks = [id for id, record in found.items() if record.kind == "task"]
            links = reader.links([*tasks, *taught], [HANDOFF_OF], back=True)
            texts = {id: _plain(record.text) for id, record in reader.get([link.src for link in links]).items()}
        return [
            link.src
            for link in links
            if link.src not in found
            and (link.dst in tasks or any(_plain(record.text) in texts[link.src] for record in found.values()))
        ]

    # --- read --------------------------------------------------------------------------------------------------

    @contextmanager
    def reader(self, scope: Scope | None = None) -> Iterator[Reader]:
        """One snapshot of everything that a scope may see."""
        with ExitStack() as stack:
            where = scope or self.scope
            first = stack.enter_context(self.store.read(where))
            if self.own is None:
                yield first
            else:
                yield Chain([first, stack.enter_context(self.own.read(replace(where, project=OWN_PROJECT)))])

    @retried
    def get(self, id: str, *, as_of: int | None = None) -> Record:
        """A record, as it is or as it was at a time."""
        with self.reader() as reader:
            record = reader.get([id]).get(id)
            if record is None:
                raise NotFound(f"There is no record {id!r} in this scope. `foveate search` finds records by their words.")
            if as_of is None:
                return record
            if record.created > as_of:
                raise NotFound(f"{id!r} did not exist at that time.")
            later = [step for step in reader.history(id) if step.at > as_of and step.before is not None]
            return later[0].before or record if later else record

    @retried
    def history(self, id: str) -> list[Change]:
        with self.reader() as reader:
            return reader.history(id)

    @retried
    def search(self, query: str, *, kinds: Sequence[str] = (), limit: int = 10, filters: Filters | None = None) -> list[Hit]:
        """Records by their words, best first; what no longer holds is found too, but behind what does."""
        for kind in kinds:
            kind_of(kind)
        query_of = Query(
            asked(query, self.clock()), SEARCH_FIELDS, None, filters or Filters(), saying_the_same(related(query))
        )
        with self.reader() as reader:
            found = reader.search(query_of, [Want(tuple(kinds), limit)])
        return sorted(found[0], key=lambda hit: hit.record.status != "active")[:limit]

    @retried
    def unknown_project(self) -> str:
        """That the store knows no such project, with names near it; empty where it does, or where it knows none at all.

        A project comes with its first record, so that a new one is unknown, too. Whoever is let into one project only
        (`within`) is told of no other.
        """
        name, known = self.scope.project, self.store.projects()
        if not known or name in known:
            return ""
        return f"The store knows no project {name!r}." + (near(name, known) if self._sees_projects else "")

    @retried
    def page(
        self, limit: int = 50, *, filters: Filters | None = None, status: str | None = None, after: int = 0
    ) -> tuple[list[Record], int]:
        """The project's records, the last kept first, and `after` for the next page; 0 where there is none."""
        for kind in filters.kinds if filters else ():
            kind_of(kind)
        with self.store.read(self.scope) as reader:
            return reader.page(limit, filters or Filters(), status=status, after=after)

    # --- whole stores ------------------------------------------------------------------------------------------

    def export(self) -> Iterator[str]:
        """The scope's records, their history and links as lines of JSON, lossless."""
        with self.store.read(self.scope) as reader:
            for record in reader.records():
                yield records.dumps(record)
            for step in reader.all_history():
                yield json.dumps({"history": _step_json(step)}, ensure_ascii=False)
            for link in reader.all_links():
                yield json.dumps({"link": [link.src, link.name, link.dst, link.weight]}, ensure_ascii=False)

    def import_(self, lines: Iterable[str]) -> Imported:
        """Read what `export` wrote. Records that are here already are left as they are; a bad line stops its batch."""
        added = known = linked = 0
        for batch in _batches(enumerate(lines, 1), BATCH):
            parsed = [self._parse(number, line) for number, line in batch if line.strip()]
            done = self._import_batch(parsed)
            added, known, linked = added + done.added, known + done.known, linked + done.links
        return Imported(added, known, linked)

    @retried
    def _import_batch(self, parsed: Sequence[Record | Link | Change]) -> Imported:
        kept = [value for value in parsed if isinstance(value, Record)]
        links = [value for value in parsed if isinstance(value, Link)]
        vectors = self.embedded([record.text for record in kept])
        with self.store.write(self.scope) as writer:
            added = sum(writer.restore(record, vector) for record, vector in zip(kept, vectors, strict=True))
            for step in (value for value in parsed if isinstance(value, Change)):
                writer.restore_history(step)
            for link in links:
                writer.link(link, anybody=True)
        return Imported(added, len(kept) - added, len(links))

    def embed_missing(
        self,
        *,
        batch: int = EMBED_BATCH,
        everywhere: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
        **options: Any,
    ) -> Embedded:
        """Give a vector to every record that has none by this embedder: after it was set or changed.

        Of the project and the user's own store; `everywhere`, of all projects of the store. Other options are those of
        `embedding.embed_missing`. It can be stopped at any point and goes on from there.
        """
        if self._vectors is None:
            raise InputError(NO_EMBEDDER)
        places = self._embedded_places(everywhere)
        lacking = [embedding.lacking(store, scope) for store, scope in places]
        done = Embedded()
        for (store, scope), number in zip(places, lacking, strict=True):
            part = Embedded(0, number, done.answered)
            if number and done.answered:
                told = partial(_told, progress, done.made, sum(lacking))
                part = embedding.embed_missing(store, scope, self._vectors, batch, progress=told, **options)
            done = Embedded(done.made + part.made, done.remaining + part.remaining, part.answered)
        return done

    def drop_unused_vectors(self) -> dict[str, int]:
        """Drop the vectors of other embedders than the one that is set, once every record has one of its; how many went."""
        if self._vectors is None:
            raise InputError(NO_EMBEDDER)
        with self.reader() as reader:
            lacking = reader.lacking()
        if lacking:
            raise InputError(f"{lacking} records have no vector by this embedder yet. Run `foveate embed` first.")
        dropped: dict[str, int] = {}
        for store, scope in self._embedded_places(False):
            for name, number in embedding.drop_unused(store, scope).items():
                dropped[name] = dropped.get(name, 0) + number
        return dropped

    def _embedded_places(self, everywhere: bool) -> list[tuple[Store, Scope]]:
        names = self.store.projects() if everywhere else [self.scope.project]
        own = [] if self.own is None else [(self.own, Scope(OWN_PROJECT))]
        return [*((self.store, Scope(name)) for name in names), *own]

    def backup(self, target: str | Path) -> None:
        self.store.backup(Path(target))

    @retried
    def stats(self) -> dict[str, Any]:
        """What the store holds of the project: of the user and the agent that the scope names, or of everybody."""
        with self.store.read(self.scope) as reader:
            return {"project": self.scope.project, "revision": reader.revision, **reader.counts()}

    def health(self) -> Health:
        return self.store.health()

    def close(self) -> None:
        self.store.close()
        if self.own is not None:
            self.own.close()

    # --- helpers -----------------------------------------------------------------------------------------------

    def make(self, kind: str, text: str, scope: Scope, values: dict[str, Any]) -> Record:
        """A record that is not kept yet."""
        now = self.clock()
        return records.make(kind, text, scope=scope, id=self.ids(kind, now), now=now, rules=self.rules, **values)

    @retried
    def _seen(self, ids: Sequence[str]) -> dict[str, Record]:
        with self.reader() as reader:
            return reader.get(ids)

    def _vector(self, text: str) -> Sequence[float] | None:
        return self.embedded([text])[0]

    def embedded(self, texts: Sequence[str]) -> Sequence[Sequence[float] | None]:
        """A vector for each text, or None where there is no embedder or it does not answer."""
        found = self._vectors(texts) if self._vectors and texts else None
        return [None] * len(texts) if found is None else found

    @retried
    def _embed_again(self, changed: Sequence[Record]) -> None:
        """Vectors of records whose words came back, unless somebody changed them in the meantime."""
        found = self._vectors([record.text for record in changed]) if self._vectors else None
        if not found:
            return
        with self._holder(changed[0].id).write(self._scope_of(changed[0].id)) as writer:
            now = writer.get([record.id for record in changed])
            for record, vector in zip(changed, found, strict=True):
                if record.id in now and now[record.id].version == record.version:
                    writer.put_vector(record.id, vector)

    def _place(self, own: bool, scope: Scope | None = None) -> Scope:
        where = scope or self.scope
        if not own:
            return where
        if self.own is None:
            raise InputError("There is no store of your own. Create it with `foveate init --own`.")
        return Scope(OWN_PROJECT, user=where.user)

    def _target(self, own: bool) -> Store:
        return self.own if own and self.own is not None else self.store

    def _scope_of(self, id: str) -> Scope:
        return replace(self.scope, project=self.get(id).scope.project)

    def _holder(self, id: str) -> Store:
        return self._target(self.get(id).scope.project == OWN_PROJECT)

    @retried
    def _change(
        self,
        id: str,
        verb: str,
        changed: Callable[[Record, int], Record],
        expect: int | None = None,
        vector: Sequence[float] | None = None,
    ) -> Record:
        with self._holder(id).write(self._scope_of(id)) as writer:
            record = writer.get([id])[id]
            after = records.finish(changed(record, self.clock()), self.rules)
            return writer.change(after, verb, expect=expect, vector=vector if after.text != record.text else None)

    def _parse(self, number: int, line: str) -> Record | Link | Change:
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise InputError("not a JSON object")
            if "link" in value:
                return Link(*value["link"])
            if "history" in value:
                step = dict(value["history"])
                before = step.pop("before")
                kept = None if before is None else records.from_json(before, self.scope, self.rules)
                return Change(**step, before=kept)
            record = records.from_json(value, self.scope, self.rules)
            if self.scope.user is not None and record.scope.user not in (None, self.scope.user):
                raise InputError(f"it belongs to user {record.scope.user!r}, not {self.scope.user!r}")
            return record
        except (ValueError, TypeError, KeyError, RecursionError, InputError) as error:
            raise InputError(
                f"Line {number} cannot be imported: {str(error).rstrip('.')}. Its batch was not written."
            ) from None


_CARRIED = {
    "tags", "entities", "subject", "attribute", "status", "outcome", "salience", "confidence", "uses", "wins", "trust",
    "pinned", "origin", "key", "created", "valid_from", "valid_to",
}  # fmt: skip


TELLING = 4
"""Words by which a statement that says otherwise is looked for: the longest, which are seldom the common ones."""


def _told(progress: Callable[[int, int], None], before: int, total: int, done: int, of: int) -> None:
    """How far one project is, as a part of all."""
    progress(before + done, max(total, before + of))


def contradicted(reader: Reader, record: Record) -> list[Record]:
    """The statements in use that a new one seems to contradict. What has a key supersedes instead."""
    if not kind_of(record.kind).keyed or record.attribute is not None:
        return []
    longest = sorted(set(analysis.terms(record.text)), key=lambda term: (-len(term), term))[:TELLING]
    query = Query(dict.fromkeys(longest, 1.0), SEARCH_FIELDS, None, Filters())
    found = reader.search(query, [Want((record.kind,), 10)])[0]
    near = [hit.record for hit in found if hit.record.status == "active" and hit.record.attribute is None]
    return [other for other in near if other.hash != record.hash and conflicting(record.text, other.text)]


def _step_json(step: Change) -> dict[str, Any]:
    return {
        "id": step.id,
        "version": step.version,
        "change": step.change,
        "at": step.at,
        "verb": step.verb,
        "before": None if step.before is None else records.to_json(step.before),
    }


def _kept(record: Record, values: dict[str, Any], *, new_text: bool) -> dict[str, Any]:
    """The values of a record that an edit does not name. A new text gets new short lengths, unless they come with it."""
    columns = _CARRIED - values.keys()
    kept = {name: getattr(record, name) for name in columns}
    if not new_text:
        kept |= {name: getattr(record, name) for name in ("summary", "micro", "paths")}
    elif record.kind == "entity" and record.data.get("name") == record.text:
        return {**kept, "data": {name: value for name, value in record.data.items() if name != "name"}}
    return {**kept, "data": dict(record.data)}


def _refuse_raise(record: Record, trust: Any) -> None:
    """Words of which nobody vouches become somebody's in one way only, and that is on record."""
    higher = trust in TRUST and TRUST.index(trust) > TRUST.index(record.trust)
    if higher and record.trust not in ("agent", "user"):
        raise InputError(f"An edit cannot raise the trust of {record.id!r}. Read it, then `foveate promote {record.id}`.")


def _plain(text: str) -> str:
    """Letters and digits alone: the same words, however they were quoted, wrapped or escaped."""
    return "".join(character for character in text.casefold() if character.isalnum())


def _batches(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
