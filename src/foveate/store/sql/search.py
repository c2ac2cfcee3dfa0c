"""Searches the records of one project, by words and by vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from foveate.store.protocol import Hit, Query, SearchGroup
from foveate.store.sql import posting_blocks, query_plan, ranking
from foveate.store.sql.index_reader import IndexReader, frequencies_by_field
from foveate.store.sql.postings import PARTITIONS, record_terms
from foveate.store.vectors import MAX_SUPERSEDED_HITS, VectorSearch, VectorView
from foveate.text.query_expansion import synonyms_only
from foveate.types import ExpansionTerm, Filters, Record

OVERFETCH_HITS = 50
"""Hits ranked beyond twice the limit if some of the best ones do not pass the filters. A third query is then rare."""

COVERAGE_HITS = 10
"""First hits whose coverage is measured: it says whether the store answers the query, and later hits cover less."""

LoadRecords = Callable[[Sequence[int], Filters], dict[int, Record]]
"""Returns those of the given docs that the scope may see and that pass the filters."""

ListDocs = Callable[[Sequence[str], Filters], list[tuple[int, str]]]
"""Returns (doc, kind) of every active record of these kinds that the scope may see and that passes the filters."""

Hits = dict[int, Hit]
"""Hits by doc."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of a search in one partition, with kinds as codes."""

    kinds: Sequence[int]
    limit: int


@dataclass(frozen=True, slots=True)
class _PartitionStats:
    """The statistics of a partition that scores depend on."""

    docs: int
    terms: int
    frequencies: Mapping[tuple[str, int, int], int]


class LexicalSearch:
    """One search by words, for several groups of kinds at once."""

    def __init__(self, index: IndexReader, load_records: LoadRecords, list_docs: ListDocs, query: Query) -> None:
        self._index = index
        self._load_records = load_records
        self._list_docs = list_docs
        self._query = query

    def hits(self, groups: Sequence[SearchGroup]) -> list[Hits]:
        """Return for each group its best `limit` current records, and a few that another record superseded."""
        hits: list[Hits] = [{} for _ in groups]
        sizes = self._index.sizes()
        frequencies = self._index.document_frequencies((*self._query.terms, *self._query.expansions))
        for partition in PARTITIONS:
            codes = {kind: code for kind, code in self._index.partition_codes(partition).items() if code in sizes}
            inside = {}
            for n, group in enumerate(groups):
                if kinds := codes.keys() & set(group.kinds or codes):
                    inside[n] = _Group(sorted(codes[kind] for kind in kinds), group.limit)
            if inside:
                stats = _PartitionStats(
                    sum(sizes[code][0] for code in codes.values()),
                    sum(sizes[code][1] for code in codes.values()),
                    {key: count for key, count in frequencies.items() if key[1] in codes.values()},
                )
                for n, found in self._partition_hits(
                    stats, inside, expansions_for(partition, self._query.expansions)
                ).items():
                    hits[n] = best_first(hits[n] | found, groups[n].limit)
        return hits

    def _partition_hits(
        self, stats: _PartitionStats, groups: Mapping[int, _Group], expansions: Mapping[str, ExpansionTerm]
    ) -> dict[int, Hits]:
        query = self._query
        plan = query_plan.plan_query(
            query.terms,
            query.field_weights,
            frequencies_by_field(stats.frequencies),
            stats.docs,
            expansions,
            query.expansion_weight,
        )
        if not plan.field_terms:
            return {}
        lists = _PostingLists(self._index, plan, stats, {kind for group in groups.values() for kind in group.kinds})
        ranked = {n: lists.top_k(group.kinds, group.limit) for n, group in groups.items()}
        records = self._load_records(sorted({doc for pairs in ranked.values() for doc, _ in pairs}), query.filters)
        allowed: dict[int, set[int]] | None = None
        has_dates = query_plan.has_date_or_quantity(query.terms)
        hits = {}
        for n, group in groups.items():
            # Nearly always the first hits are current and pass the filters. More are ranked only if some do not.
            if any(doc not in records or records[doc].status != "active" for doc, _ in ranked[n]):
                ranked[n] = lists.top_k(group.kinds, 2 * group.limit + OVERFETCH_HITS)
                records |= self._load_records([doc for doc, _ in ranked[n] if doc not in records], query.filters)
            visible = [(doc, score) for doc, score in ranked[n] if doc in records]
            current = [pair for pair in visible if records[pair[0]].status == "active"][: group.limit]
            superseded = [pair for pair in visible if records[pair[0]].status != "active"][:MAX_SUPERSEDED_HITS]
            if len(current) < group.limit and len(ranked[n]) == 2 * group.limit + OVERFETCH_HITS:
                # The filters reject nearly everything. So list first what passes them, and rank only that.
                if allowed is None:
                    allowed = self._allowed_docs(lists.kinds)
                docs = set[int]().union(*(allowed.get(kind, ()) for kind in group.kinds))
                current = lists.top_k(group.kinds, group.limit, docs)
                records |= self._load_records([doc for doc, _ in current], query.filters)
            best = [doc for doc, _ in current[:COVERAGE_HITS]]
            covered = {doc: plan.coverage(record_terms(records[doc], with_dates=has_dates)) for doc in best}
            hits[n] = {
                doc: Hit(records[doc], plan.relevance(score), coverage=covered.get(doc))
                for doc, score in (*current, *superseded)
            }
        return hits

    def _allowed_docs(self, kinds: Sequence[int]) -> dict[int, set[int]]:
        """Return the active records that pass the filters, by kind code. This reads every record of these kinds."""
        codes = {name: code for name, code in self._index.kind_codes().items() if code in kinds}
        docs: dict[int, set[int]] = {code: set() for code in kinds}
        for doc, kind in self._list_docs(list(codes), self._query.filters):
            docs[codes[kind]].add(doc)
        return docs


def expansions_for(partition: str, expansions: Mapping[str, ExpansionTerm]) -> Mapping[str, ExpansionTerm]:
    """Return the expansions that apply to a partition: associations such as `hobby` -> `kickboxing` only to messages."""
    return expansions if partition == "events" else synonyms_only(expansions)


class _PostingLists:
    """The posting lists of one search. Each is read once, however many groups need it."""

    def __init__(self, index: IndexReader, plan: query_plan.QueryPlan, stats: _PartitionStats, kinds: set[int]) -> None:
        self._index = index
        self._plan = plan
        self._frequencies = stats.frequencies
        # At least 1, because texts without terms, such as emoji, would make it 0.
        self._average_length = max(stats.terms / stats.docs, 1.0)
        self.kinds = sorted(kinds)
        # For each (term, field): the docs and codes of its blocks, by kind.
        self._blocks: dict[tuple[str, int], dict[int, tuple[list[bytes], list[bytes]]]] = {}

    def top_k(self, kinds: Sequence[int], limit: int, allowed_docs: set[int] | None = None) -> list[tuple[int, float]]:
        """Return (doc, score) of the best records of some kinds."""
        field_terms = [
            replace(item, doc_frequency=count)
            for item in self._plan.field_terms
            if (count := sum(self._frequencies.get((item.term, kind, item.field), 0) for kind in kinds))
        ]
        return ranking.top_k(field_terms, lambda batch: self._load(batch, kinds), self._average_length, limit, allowed_docs)

    def _load(self, batch: Sequence[ranking.FieldTerm], kinds: Sequence[int]) -> dict[tuple[str, int], ranking.Postings]:
        missing = [item.key for item in batch if item.key not in self._blocks]
        self._blocks |= {key: {} for key in missing}
        for kind, term, field, docs, codes in self._index.blocks(missing, self.kinds) if missing else ():
            blocks = self._blocks[term, field].setdefault(kind, ([], []))
            blocks[0].append(docs)
            blocks[1].append(codes)
        lists = {}
        for item in batch:
            parts = [blocks for kind, blocks in self._blocks[item.key].items() if kind in kinds]
            docs_of_kinds = [block for docs, _ in parts for block in docs]
            lists[item.key] = posting_blocks.concat(docs_of_kinds, [block for _, codes in parts for block in codes])
        return lists


def add_vector_hits(
    search: VectorSearch,
    view: VectorView,
    vector: Sequence[float],
    groups: Sequence[SearchGroup],
    hits: Sequence[Hits],
    load_records: Callable[[Sequence[int]], dict[int, Record]],
) -> None:
    """Add the nearest records to the hits of each group, and the similarity of every hit that has a vector."""
    nearest = search.nearest(view, vector, groups)
    new = {near.doc for found, group in zip(hits, nearest, strict=True) for near in group if near.doc not in found}
    records = load_records(sorted(new)) if new else {}
    for found, group in zip(hits, nearest, strict=True):
        found |= {near.doc: Hit(records[near.doc], 0.0) for near in group if near.doc not in found}
    similarities = {near.doc: near.similarity for group in nearest for near in group}
    by_words_only = {doc for found in hits for doc in found if doc not in similarities}
    similarities |= search.similarities(view, vector, sorted(by_words_only))
    for found in hits:
        for doc, hit in found.items():
            found[doc] = replace(hit, vector=similarities.get(doc))


def best_first(hits: Mapping[int, Hit], limit: int | None = None) -> Hits:
    """Return hits by relevance; with a limit, that many current hits and then a few superseded ones.

    Relevance ends at 1. The sort is stable, so hits with a relevance of 1 keep the order of their scores.
    """
    ranked = sorted(hits.items(), key=lambda pair: -pair[1].relevance)
    if limit is None:
        return dict(ranked)
    current = [pair for pair in ranked if pair[1].record.status == "active"]
    superseded = [pair for pair in ranked if pair[1].record.status != "active"]
    return dict((*current[:limit], *superseded[:MAX_SUPERSEDED_HITS]))
