-- The queries of a SQLite store by name. A name in braces stands for the text of another query of this file. A list is passed
-- as JSON and read by `json_each`, because SQLite has no array parameters. A time is in milliseconds, UTC.
--
-- foveate does not run `analyze`: its figures would be of one moment in the life of a file. Without them SQLite's planner
-- often prefers a key that only fixes the project, and then reads all rows of the project. `indexed by` and `cross join`
-- prevent that where it was seen; `tests/unit/test_query_plans.py` fails on a new case.

-- name: meta
select name, value from meta

-- name: secret
select value from meta where name = 'secret'

-- name: set_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value

-- name: add_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do nothing

-- name: delete_meta
delete from meta where name = :name

-- name: project
select project, revision, docs from projects where name = :name

-- name: add_project
insert into projects (name) values (:name) on conflict (name) do nothing

-- name: project_names
select project, name from projects

-- name: bump_revision
update projects set revision = revision + 1, docs = :docs where project = :project

-- name: kinds
select name, kind from kinds

-- name: add_kind
insert into kinds (name) values (:name) on conflict (name) do nothing

-- name: record_columns
doc, id, kind, user, agent, session, task, text, summary, micro, tags, entities, paths, subject, attribute, status,
outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created, updated, valid_from, valid_to,
hash, version, sketch, full_tokens, summary_tokens, micro_tokens

-- name: visible
-- A level that is null in a record is shared. Session and task restrict private kinds only.
(user is null or user = :user) and (agent is null or agent = :agent)
and (private = 0 or ((session is null or session = :session) and (task is null or task = :task)))

-- name: both_ends_visible
exists (select 1 from records where project = :project and id = links.src and {visible})
and exists (select 1 from records where project = :project and id = links.dst and {visible})

-- name: any_owner
:user is null and :agent is null

-- name: owned_or_shared
-- For counts. Unlike `visible`, a scope without a user counts the records of all users.
(:user is null or user is null or user = :user) and (:agent is null or agent is null or agent = :agent)

-- name: own_scope
(user is null or user = :user) and (agent is null or agent = :agent)

-- name: receipt_columns
id, created, body, session, line

-- name: receipt_size
length(body) + coalesce(octet_length(line), 0)

-- name: expired
pinned = 0 and (created < :surplus_before or (created < :before and updated < :before))
and not exists (select 1 from links l where l.project = :project and l.src = records.id)
and not exists (select 1 from links l where l.project = :project and l.dst = records.id)
and (task is null or not exists (select 1 from records t
  where t.project = :project and t.id = records.task and t.kind = 'task' and t.status = 'active'
  and coalesce(t.data ->> 'state', 'open') not in ('completed', 'failed')))

-- name: live
status not in ('retired', 'archived')

-- name: matches_filters
-- A parameter that is null does not filter.
(:since is null or created >= :since) and (:until is null or created < :until)
and (:trusts is null or trust in (select value from json_each(:trusts)))
and (:tags is null or exists (select 1 from json_each(tags) t join json_each(:tags) w on t.value = w.value))
and (:only_kinds is null or kind in (select value from json_each(:only_kinds)))
and (:event_types is null or kind <> 'event' or data ->> 'type' in (select value from json_each(:event_types)))
and (:entity_types is null or kind <> 'entity' or data ->> 'type' in (select value from json_each(:entity_types)))

-- name: not_internal
kind not in (select value from json_each(:internal_kinds))

-- name: by_ids
select {record_columns} from records where project = :project and id in (select value from json_each(:ids)) and {visible}

-- name: by_docs
select {record_columns} from records
where project = :project and doc in (select value from json_each(:docs)) and {live} and {visible} and {matches_filters}

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

-- name: by_key
select {record_columns} from records where project = :project and key = :key and user is :user and agent is :agent
and (private = 0 or (session is :session and task is :task))

-- name: by_key_visible
select {record_columns} from records where project = :project and key = :key and {visible}

-- name: count_kind
select count(*) from records where project = :project and kind = :kind and {live} and {visible}

-- name: by_hash
select doc, id, status, valid_from from records where project = :project and hash = :hash

-- name: attribute_values
select {record_columns} from records
where project = :project and subject = :subject and attribute = :attribute and status in ('active', 'disputed')
and user is :user and agent is :agent

-- name: doc_of
select doc, kind, status from records where project = :project and id = :id

-- name: always_on
select {record_columns} from records
where project = :project and kind in (select value from json_each(:kinds)) and status = 'active' and {visible}
order by salience desc, created, id

-- name: pinned
select {record_columns} from records indexed by records_pinned
where project = :project and pinned = 1 and status = 'active' and {visible}
and (:kinds is null or kind in (select value from json_each(:kinds)))
order by salience desc, created, id

-- name: recent
select {record_columns} from records
where project = :project and kind = :kind and {live} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: recent_of_session
select {record_columns} from records indexed by records_session
where project = :project and session = :in_session and kind = :kind and {live} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: sessions
-- The recursion jumps from one session to the next in the index, instead of reading every record for `distinct`.
with recursive names (name) as (
  select min(session) from records indexed by records_session where project = :project and session is not null
  union all
  select (select min(r.session) from records r indexed by records_session
    where r.project = :project and r.session > names.name)
  from names where names.name is not null
)
select name, latest from (
  select name, (
    select created from records indexed by records_session
    where project = :project and session = names.name and kind = :kind and {live} and {visible} and {matches_filters}
    order by created desc limit 1
  ) as latest
  from names where name is not null
)
where latest is not null order by latest desc, name limit :limit

-- name: most_salient
select {record_columns} from records
where project = :project and kind = :kind and status = 'active' and {visible} and {matches_filters}
order by salience desc, created desc, doc desc limit :limit

-- name: recent_archived
select {record_columns} from records
where project = :project and kind = :kind and status = 'archived' and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: recent_archived_of_session
select {record_columns} from records indexed by records_session
where project = :project and session = :in_session and kind = :kind and status = 'archived' and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: all_records
-- In pages, so that an export of a large project needs little memory.
select {record_columns} from records where project = :project and {visible} and doc > :after order by doc limit 500

-- name: records_page
select {record_columns} from records
where project = :project and {visible} and {matches_filters} and (:only_kinds is not null or {not_internal})
and (:status is null or status = :status)
and (:after = 0 or doc < :after) order by doc desc limit :limit

-- name: every_record
select {record_columns} from records where project = :project and doc > :after order by doc limit 500

-- name: insert_record
insert into records (project, doc, id, kind, user, agent, session, task, private, text, summary, micro, tags, entities,
  paths, subject, attribute, status, outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created,
  updated, valid_from, valid_to, hash, version, sketch, full_tokens, summary_tokens, micro_tokens)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_record
-- Changes no row if the version has changed since it was read; the writer then raises a conflict.
update records set
  user = ?5, agent = ?6, session = ?7, task = ?8, private = ?9, text = ?10, summary = ?11, micro = ?12, tags = ?13,
  entities = ?14, paths = ?15, subject = ?16, attribute = ?17, status = ?18, outcome = ?19, salience = ?20,
  confidence = ?21, uses = ?22, wins = ?23, trust = ?24, pinned = ?25, origin = ?26, key = ?27, data = ?28,
  created = ?29, updated = ?30, valid_from = ?31, valid_to = ?32, hash = ?33, version = ?34, sketch = ?35,
  full_tokens = ?36, summary_tokens = ?37, micro_tokens = ?38
where project = ?1 and doc = ?2 and id = ?3 and kind = ?4 and version = ?34 - 1

-- name: count_confirmation
update records set data = :data, updated = :updated where project = :project and id = :id

-- name: count_use
update records set uses = uses + :uses, wins = wins + :wins where project = :project and id = :id

-- name: update_tokens
update records set full_tokens = ?3, summary_tokens = ?4, micro_tokens = ?5 where project = ?1 and doc = ?2

-- name: delete_record
delete from records where project = :project and doc = :doc

-- name: document_frequencies
select term, kind, field, sum(size) from postings
where project = :project and term in (select value from json_each(:terms))
group by term, kind, field

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

-- name: index_sizes
select kind, docs, tokens from volumes where project = :project

-- name: grow_index_size
insert into volumes (project, kind, docs, tokens) values (:project, :kind, :docs, :tokens)
on conflict (project, kind) do update set docs = docs + excluded.docs, tokens = tokens + excluded.tokens

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

-- name: every_block
select term, kind, field, first, docs, codes from postings where project = :project
and (term, kind, field, first) > (:term, :kind, :field, :first) order by term, kind, field, first limit 5000

-- name: put_block
insert into postings (project, term, kind, field, first, size, docs, codes) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (project, term, kind, field, first)
do update set size = excluded.size, docs = excluded.docs, codes = excluded.codes

-- name: delete_block
delete from postings where project = ? and term = ? and kind = ? and field = ? and first = ?

-- name: docs_matching
select doc, kind from records where project = :project and kind in (select value from json_each(:kinds))
and status = 'active' and {visible} and {matches_filters}

-- name: add_name
insert into names (project, name, doc) values (?, ?, ?) on conflict do nothing

-- name: delete_names
delete from names where project = :project and doc = :doc

-- name: entities_by_name
select n.name, n.doc from names n where n.project = :project and n.name in (select value from json_each(:names))

-- name: add_link
insert into links (project, src, name, dst, weight) values (:project, :src, :name, :dst, :weight)
on conflict (project, src, name, dst) do update set weight = excluded.weight

-- name: delete_link
delete from links where project = :project and src = :src and name = :name and dst = :dst

-- name: delete_links_of
-- Without the last condition SQLite reads every link of the project: 9 ms for 100,000, for each record that is forgotten.
delete from links where project = :project and (src = :id or dst = :id)
and src in (select :id union select src from links indexed by links_back where project = :project and dst = :id)

-- name: links_from
select src, name, dst, weight from links
where project = :project and src in (select value from json_each(:ids))
and (:names is null or name in (select value from json_each(:names))) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: links_to
-- Without the hint SQLite reads every link of the project: 12 instead of 0.1 ms among 100,000.
select src, name, dst, weight from links indexed by links_back
where project = :project and dst in (select value from json_each(:ids))
and (:names is null or name in (select value from json_each(:names))) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: relations
select src, name, dst, weight from (
  select src, name, dst, weight from links where project = :project and src in (select value from json_each(:ids))
  union
  select src, name, dst, weight from links indexed by links_back
  where project = :project and dst in (select value from json_each(:ids))
) relation
where name not in (select value from json_each(:structural_links))
and exists (select 1 from records
  where project = :project and id = relation.src and kind = 'entity' and status = 'active' and {visible})
and exists (select 1 from records
  where project = :project and id = relation.dst and kind = 'entity' and status = 'active' and {visible})
order by weight desc, src, name, dst limit :limit

-- name: all_links
select src, name, dst, weight from links where project = :project and {both_ends_visible} order by src, name, dst

-- name: add_history
insert into history (project, id, version, change, at, verb, before) values (?, ?, ?, ?, ?, ?, ?)

-- name: history
select id, version, change, at, verb, before from history where project = :project and id = :id order by version

-- name: all_history
select id, version, change, at, verb, before from history
where project = :project and exists (select 1 from records where project = :project and id = history.id and {visible})
order by id, version

-- name: restore_history
insert into history (project, id, version, change, at, verb, before) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing

-- name: history_of_change
-- Without the hint SQLite reads the whole history, because that is in the order of `order by`: 15 ms for 100,000 changes.
select id, version, change, at, verb, before from history indexed by history_change
where project = :project and change = :change order by id, version

-- name: delete_history
delete from history where project = :project and id = :id

-- name: namespace_of_project
select s.space, s.dim from segments g join spaces s on s.space = g.space
where g.project = :project and s.fingerprint = :fingerprint

-- name: namespace_id
select space, dim from spaces where fingerprint = :fingerprint and dim = :dim

-- name: add_namespace
insert into spaces (fingerprint, dim) values (:fingerprint, :dim) on conflict (fingerprint, dim) do nothing

-- name: add_vector
insert into vectors (project, space, doc, kind, seq, vector) values (?, ?, ?, ?, ?, ?)
on conflict (project, space, doc) do update set kind = excluded.kind, seq = excluded.seq, vector = excluded.vector

-- name: delete_vectors
delete from vectors
where project = :project and space in (select space from spaces where space <> :keep_space) and doc = :doc returning space

-- name: drop_vectors
delete from vectors where rowid in (
  select rowid from vectors where project = :project and space = :space order by seq limit :limit
)

-- name: segment
select latest, removed from segments where project = :project and space = :space

-- name: grow_segment
insert into segments (project, space, latest, removed, vectors) values (:project, :space, :latest, 0, :count)
on conflict (project, space) do update set latest = excluded.latest, vectors = vectors + excluded.vectors

-- name: shrink_segment
update segments set latest = latest + 1, removed = latest + 1, vectors = vectors - :count
where project = :project and space = :space

-- name: count_segments
delete from segments;
insert into segments (project, space, latest, removed, vectors)
select project, space, max(seq), max(seq), count(*) from vectors group by project, space

-- name: vectors_since
select seq, doc, kind, vector from vectors
where project = :project and space = :space and seq > :after order by seq limit :limit

-- name: vector_docs
select json_group_array(doc) from vectors where project = :project and space = :space

-- name: docs_with_vector
select doc from vectors
where project = :project and space = :space and doc in (select value from json_each(:docs))

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

-- name: count_missing_vectors
-- From two totals that every write keeps, because this runs with each context.
select (select coalesce(sum(docs), 0) from volumes where project = :project)
  - coalesce((select vectors from segments where project = :project and space = :space), 0)

-- name: records_without_vector
select {record_columns} from records
where project = :project and doc > :after and not exists
  (select 1 from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)
order by doc limit :limit

-- name: texts_without_vector
select doc, id, text from records
where project = :project and id in (select value from json_each(:ids)) and not exists
  (select 1 from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)

-- name: max_doc
select coalesce(max(doc), 0) from records where project = :project

-- name: embedding_namespaces
select s.fingerprint, s.dim, g.vectors from segments g join spaces s on s.space = g.space
where g.project = :project and g.vectors > 0 order by s.space

-- name: add_receipt
insert into receipts (project, id, user, agent, session, created, line, body)
values (:project, :id, :user, :agent, :session, :created, :line, :body)
on conflict (project, id) do update
set session = excluded.session, created = excluded.created, line = excluded.line, body = excluded.body

-- name: update_receipt
update receipts set body = :body, line = :line where project = :project and id = :id

-- name: add_receipt_item
insert into receipt_items (project, record, receipt) values (?, ?, ?) on conflict do nothing

-- name: receipt
select body from receipts where project = :project and id = :id and {own_scope}

-- name: receipts
select {receipt_columns} from receipts where project = :project and {own_scope} order by created desc, id desc limit :limit

-- name: receipt_summaries
select line from receipts where project = :project and line <> '' and {own_scope}
and (:created is null or (created, id) < (:created, :id)) order by created desc, id desc limit :limit

-- name: receipt_summaries_of_session
select line from receipts
where project = :project and session = :in_session and line <> '' and {own_scope}
and (:created is null or (created, id) < (:created, :id)) order by created desc, id desc limit :limit

-- name: receipt_summaries_since
select line from receipts where project = :project and created >= :since and line <> '' and {own_scope}
order by created desc, id desc limit :limit

-- name: receipt_sessions
select session, count(*), max(created) from receipts where project = :project and session is not null and {own_scope}
group by session order by max(created) desc, session limit :limit

-- name: receipt_agents
select distinct agent from receipts
where project = :project and agent is not null and (user is null or user = :user) order by agent

-- name: items_shown_by
select i.receipt, i.record from receipt_items i join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.receipt in (select value from json_each(:ids)) and {own_scope} order by i.receipt, i.record

-- name: every_receipt
select id, body from receipts where project = :project and id > :after order by id limit 500

-- name: receipts_with_record
-- `cross join` makes SQLite begin with the record's receipts. From the other side it reads all receipts: 31 ms of 20,000.
select {receipt_columns} from receipt_items i cross join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.record = :record and {own_scope} order by r.created desc, r.id limit :limit

-- name: oldest_receipt
select created from receipts where project = :project order by created limit 1

-- name: old_receipts
select id from receipts where project = :project and created < :before

-- name: receipt_bytes
select coalesce(sum({receipt_size}), 0) from receipts where project = :project

-- name: receipt_sizes
select id, {receipt_size} from receipts where project = :project order by created desc, id desc

-- name: delete_receipts
delete from receipts where project = :project and id in (select value from json_each(:ids))

-- name: delete_items_of_receipts
delete from receipt_items where project = :project and receipt in (select value from json_each(:ids))

-- name: delete_items_of_record
delete from receipt_items where project = :project and record = :record

-- name: newest_event
select created from records where project = :project and kind = 'event' order by created desc limit 1

-- name: oldest_event_to_keep
select created from records where project = :project and kind = 'event' order by created desc limit 1 offset :max_events - 1

-- name: old_events
select created, doc from records
where project = :project and kind = 'event' and (created, doc) > (:created, :doc) and created < :until
order by created, doc limit :limit

-- name: expired_events
select {record_columns} from records where project = :project and doc in (select value from json_each(:docs)) and {expired}

-- name: count_expired_events
select count(*) from records where project = :project and kind = 'event' and {expired}

-- name: count_records
select kind, status, count(*) from records where project = :project and {owned_or_shared} group by kind, status

-- name: growth
-- By number, which is the order on disk: half the time of the other indexes.
select
  coalesce(min(created), 0),
  coalesce(sum(created >= :since), 0),
  coalesce(sum(kind = 'fact' and {live}), 0),
  coalesce(sum(kind = 'fact' and {live} and coalesce(json_extract(data, '$.confirmations'), 0) > 0), 0)
from records indexed by records_doc where project = :project and {visible} and {not_internal}

-- name: growth_by_day
select created / 86400000, count(*) from records indexed by records_doc
where project = :project and created >= :since and {visible} and {not_internal} group by 1 order by 1

-- name: count_rest
select
  (select count(*) from links where project = :project and ({any_owner} or (
    exists (select 1 from records where project = :project and id = links.src and {owned_or_shared})
    and exists (select 1 from records where project = :project and id = links.dst and {owned_or_shared})))),
  (select count(*) from history where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and id = history.id and {owned_or_shared}))),
  (select count(*) from receipts where project = :project and {owned_or_shared}),
  (select coalesce(sum({receipt_size}), 0) from receipts where project = :project and {owned_or_shared}),
  (select count(*) from vectors where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and doc = vectors.doc and {owned_or_shared})))

-- name: count_indexed
select
  (select count(*) from records where project = :project),
  (select coalesce(sum(docs), 0) from volumes where project = :project)

-- name: delete_orphans
-- After a salvage, rows can refer to records that could not be read.
update projects set docs = max(docs, (select coalesce(max(doc), 0) from records r where r.project = projects.project));
delete from links where not exists (select 1 from records r where r.project = links.project and r.id = links.src)
  or not exists (select 1 from records r where r.project = links.project and r.id = links.dst);
delete from history where not exists (select 1 from records r where r.project = history.project and r.id = history.id);
delete from vectors where not exists (select 1 from records r where r.project = vectors.project and r.doc = vectors.doc);
delete from receipt_items where not exists
  (select 1 from receipts r where r.project = receipt_items.project and r.id = receipt_items.receipt)

-- name: clear_postings
delete from postings where project = :project

-- name: clear_volumes
delete from volumes where project = :project

-- name: clear_names
delete from names where project = :project
