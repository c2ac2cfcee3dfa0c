-- The queries of a SQLite store that differ from PostgreSQL's, and the parts of the shared ones that do; see `sql/queries.sql`.
--
-- foveate does not run `analyze`: its figures would be of one moment in the life of a file. Without them SQLite's planner
-- often prefers a key that only fixes the project, and then reads all rows of the project. `indexed by` and `cross join`
-- prevent that where it was seen; `tests/unit/test_query_plans.py` fails on a new case.

-- name: in_texts
in (select value from json_each(:{}))

-- name: in_numbers
in (select value from json_each(:{}))

-- name: has_tag
exists (select 1 from json_each(tags) t join json_each(:tags) w on t.value = w.value)

-- name: as_json
{}

-- name: indexed_by
indexed by {}

-- name: sorted_by
-- Nothing: the index returns the rows in this order. If it were asked for, SQLite would read by another index, or take twice
-- as long to look up 60 records.

-- name: secret
select value from meta where name = 'secret'

-- name: add_project
insert into projects (name) values (:name) on conflict (name) do nothing

-- name: bump_revision
update projects set revision = revision + 1, docs = :docs where project = :project

-- name: session_neighbors
-- The pair (created, doc) orders records of the same millisecond, and both are in the index. The hint saves the reading of
-- every record that has a session: 0.2 instead of 4 ms for 60 ids among 20,000 events.
select h.id,
  (select json_group_array(doc) from (select doc from records where project = :project and session = h.session
    and (created, doc) > (h.created, h.doc) and kind in (select value from json_each(:kinds)) and {live} and {visible}
    order by created, doc limit :max_distance)),
  (select json_group_array(doc) from (select doc from records where project = :project and session = h.session
    and (created, doc) < (h.created, h.doc) and kind in (select value from json_each(:kinds)) and {live} and {visible}
    order by created desc, doc desc limit :max_distance))
from records h indexed by records_id where h.project = :project and h.id in (select value from json_each(:ids)) and h.session is not null

-- name: always_on
select {record_columns} from records
where project = :project and kind in (select value from json_each(:kinds)) and status = 'active' and {visible}
order by salience desc, created, id

-- name: update_tokens
update records set full_tokens = ?3, summary_tokens = ?4, micro_tokens = ?5 where project = ?1 and doc = ?2

-- name: terms_with_prefix
-- The recursion jumps from one term to the next in the index. 20 terms are tried, since some are of other kinds only.
with recursive terms (term) as (
  select min(term) from postings where project = :project and term >= :prefix and term < :end
  union all
  select (select min(p.term) from postings p where p.project = :project and p.term > terms.term and p.term < :end)
  from terms where terms.term is not null
  limit 20
)
select term from terms where exists (select 1 from postings p
  where p.project = :project and p.term = terms.term and p.kind in (select value from json_each(:kinds)))
limit 5

-- name: blocks
-- `cross join` keeps the order of the tables, so that each list is one lookup in the key.
select p.kind, p.term, p.field, p.docs, p.codes
from json_each(:lists) l cross join json_each(:kinds) k cross join postings p
  on p.project = :project and p.term = l.value ->> 0 and p.kind = k.value and p.field = l.value ->> 1

-- name: blocks_for_docs
-- The block of a list in which a record is, or belongs: the last one that begins at or below its number.
select l.value ->> 0, l.value ->> 1, l.value ->> 2, p.first, p.docs, p.codes
from json_each(:lists) l cross join postings p
  on p.project = :project and p.term = l.value ->> 0 and p.kind = l.value ->> 1 and p.field = l.value ->> 2
  and p.first = (select max(first) from postings where project = :project
    and term = l.value ->> 0 and kind = l.value ->> 1 and field = l.value ->> 2 and first <= l.value ->> 3)

-- name: put_block
insert into postings (project, term, kind, field, first, size, docs, codes) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (project, term, kind, field, first)
do update set size = excluded.size, docs = excluded.docs, codes = excluded.codes

-- name: delete_block
delete from postings where project = ? and term = ? and kind = ? and field = ? and first = ?

-- name: add_name
insert into names (project, name, doc) values (?, ?, ?) on conflict do nothing

-- name: delete_links_of
-- Without the last condition SQLite reads every link of the project: 9 ms for 100,000, for each record that is forgotten.
delete from links where project = :project and (src = :id or dst = :id)
and src in (select :id union select src from links indexed by links_back where project = :project and dst = :id)

-- name: add_vector
insert into vectors (project, space, doc, kind, seq, vector) values (?, ?, ?, ?, ?, ?)
on conflict (project, space, doc) do update set kind = excluded.kind, seq = excluded.seq, vector = excluded.vector

-- name: drop_vectors
delete from vectors where rowid in (
  select rowid from vectors where project = :project and space = :space order by seq limit :limit
)

-- name: count_segments
delete from segments;
insert into segments (project, space, latest, removed, vectors)
select project, space, max(seq), max(seq), count(*) from vectors group by project, space

-- name: vectors_since
select seq, doc, kind, vector from vectors
where project = :project and space = :space and seq > :after order by seq limit :limit

-- name: vector_docs
select json_group_array(doc) from vectors where project = :project and space = :space

-- name: vectors_of
select doc, vector from vectors
where project = :project and space = :space and doc in (select value from json_each(:docs))

-- name: matching_vectors
select doc, status,
  (select v.vector from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)
from records
where project = :project and doc in (select value from json_each(:docs)) and {live} and {visible} and {matches_filters}

-- name: matching_docs
-- The time range is written without `or`, so that the index on (project, kind, created) finds it.
select doc from records
where project = :project and kind in (select value from json_each(coalesce(:kinds, (select json_group_array(name) from kinds))))
and created >= coalesce(:since, 0) and created < coalesce(:until, 9223372036854775807)
and {live} and {visible} and {matches_filters} limit :limit

-- name: add_receipt_item
insert into receipt_items (project, record, receipt) values (?, ?, ?) on conflict do nothing

-- name: receipts_with_record
-- `cross join` makes SQLite begin with the record's receipts. From the other side it reads all receipts: 31 ms of 20,000.
select {receipt_columns} from receipt_items i cross join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.record = :record and {own_scope} order by r.created desc, r.id limit :limit

-- name: delete_orphans
-- After a salvage, rows can refer to records that could not be read.
update projects set docs = max(docs, (select coalesce(max(doc), 0) from records r where r.project = projects.project));
delete from links where not exists (select 1 from records r where r.project = links.project and r.id = links.src)
  or not exists (select 1 from records r where r.project = links.project and r.id = links.dst);
delete from history where not exists (select 1 from records r where r.project = history.project and r.id = history.id);
delete from vectors where not exists (select 1 from records r where r.project = vectors.project and r.doc = vectors.doc);
delete from receipt_items where not exists
  (select 1 from receipts r where r.project = receipt_items.project and r.id = receipt_items.receipt)
