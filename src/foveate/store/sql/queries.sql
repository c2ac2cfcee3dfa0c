-- The queries that SQLite and PostgreSQL share, by name. A name in braces stands for the text of another query, from this file
-- or from the `queries.sql` of the dialect; a word after the name takes the place of `{}` in that text. A list is passed as
-- JSON, because SQLite has no array parameters. A time is in milliseconds, UTC.
--
-- What looks superfluous is needed by one of the two: `user` is a reserved word in PostgreSQL, and a parameter that is compared
-- with null needs a type there.

-- name: meta
select name, value from meta

-- name: set_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value

-- name: add_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do nothing

-- name: delete_meta
delete from meta where name = :name

-- name: project
select project, revision, docs from projects where name = :name

-- name: project_names
select project, name from projects order by project

-- name: kinds
select name, kind from kinds

-- name: add_kind
insert into kinds (name) values (:name) on conflict (name) do nothing

-- name: record_columns
doc, id, kind, "user", agent, session, task, text, summary, micro, tags, entities, paths, subject, attribute, status,
outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created, updated, valid_from, valid_to,
hash, version, sketch, full_tokens, summary_tokens, micro_tokens

-- name: visible
-- A level that is null in a record is shared. Session and task restrict private kinds only.
("user" is null or "user" = :user) and (agent is null or agent = :agent)
and (private = 0 or ((session is null or session = :session) and (task is null or task = :task)))

-- name: both_ends_visible
exists (select 1 from records where project = :project and id = links.src and {visible})
and exists (select 1 from records where project = :project and id = links.dst and {visible})

-- name: any_owner
cast(:user as text) is null and cast(:agent as text) is null

-- name: owned_or_shared
-- For counts. Unlike `visible`, a scope without a user counts the records of all users.
(cast(:user as text) is null or "user" is null or "user" = :user)
and (cast(:agent as text) is null or agent is null or agent = :agent)

-- name: own_scope
("user" is null or "user" = :user) and (agent is null or agent = :agent)

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
  and coalesce({as_json t.data} ->> 'state', 'open') not in ('completed', 'failed')))

-- name: live
status not in ('retired', 'archived')

-- name: matches_filters
-- A parameter that is null does not filter.
(cast(:since as bigint) is null or created >= :since) and (cast(:until as bigint) is null or created < :until)
and (cast(:trusts as json) is null or trust {in_texts trusts})
and (cast(:tags as json) is null or {has_tag})
and (cast(:only_kinds as json) is null or kind {in_texts only_kinds})
and (cast(:event_types as json) is null or kind <> 'event' or {as_json data} ->> 'type' {in_texts event_types})
and (cast(:entity_types as json) is null or kind <> 'entity' or {as_json data} ->> 'type' {in_texts entity_types})

-- name: not_internal
not kind {in_texts internal_kinds}

-- name: by_ids
select {record_columns} from records where project = :project and id {in_texts ids} and {visible} {sorted_by id}

-- name: by_docs
select {record_columns} from records
where project = :project and doc {in_numbers docs} and {live} and {visible} and {matches_filters} {sorted_by doc}

-- name: by_key
select {record_columns} from records
where project = :project and key = :key and "user" is not distinct from :user and agent is not distinct from :agent
and (private = 0 or (session is not distinct from :session and task is not distinct from :task)) {sorted_by doc}

-- name: by_key_visible
select {record_columns} from records where project = :project and key = :key and {visible}

-- name: count_kind
select count(*) from records where project = :project and kind = :kind and {live} and {visible}

-- name: count_created
select count(*) from records {indexed_by records_doc}
where project = :project and created <= :until and {live} and {visible} and {not_internal}

-- name: by_hash
select doc, id, status, valid_from from records where project = :project and hash = :hash

-- name: attribute_values
select {record_columns} from records
where project = :project and subject = :subject and attribute = :attribute and status in ('active', 'disputed')
and "user" is not distinct from :user and agent is not distinct from :agent {sorted_by doc}

-- name: doc_of
select doc, kind, status from records where project = :project and id = :id

-- name: pinned
select {record_columns} from records {indexed_by records_pinned}
where project = :project and pinned = 1 and status = 'active' and {visible}
and (cast(:kinds as json) is null or kind {in_texts kinds})
order by salience desc, created, id

-- name: live_or_archived
status <> 'retired' and (status = 'archived') = (:archived = 1)

-- name: recent
select {record_columns} from records
where project = :project and kind = :kind and {live_or_archived} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: recent_of_session
select {record_columns} from records {indexed_by records_session}
where project = :project and session = :in_session and kind = :kind and {live_or_archived} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: sessions
-- The recursion jumps from one session to the next in the index, instead of reading every record for `distinct`.
with recursive named (name) as (
  select min(session) from records {indexed_by records_session} where project = :project and session is not null
  union all
  select (select min(r.session) from records r {indexed_by records_session}
    where r.project = :project and r.session > named.name)
  from named where named.name is not null
)
select name, latest from (
  select name, (
    select created from records {indexed_by records_session}
    where project = :project and session = named.name and kind = :kind and {live} and {visible} and {matches_filters}
    order by created desc limit 1
  ) as latest
  from named where name is not null
) found
where latest is not null order by latest desc, name limit :limit

-- name: most_salient
select {record_columns} from records
where project = :project and kind = :kind and status = 'active' and {visible} and {matches_filters}
order by salience desc, created desc, doc desc limit :limit

-- name: all_records
-- In pages, so that an export of a large project needs little memory.
select {record_columns} from records where project = :project and {visible} and doc > :after order by doc limit 500

-- name: records_page
select {record_columns} from records
where project = :project and {visible} and {matches_filters} and (cast(:only_kinds as json) is not null or {not_internal})
and (cast(:status as text) is null or status = :status)
and (:after = 0 or doc < :after) order by doc desc limit :limit

-- name: every_record
select {record_columns} from records where project = :project and doc > :after order by doc limit 500

-- name: insert_record
insert into records (project, doc, id, kind, "user", agent, session, task, private, text, summary, micro, tags, entities,
  paths, subject, attribute, status, outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created,
  updated, valid_from, valid_to, hash, version, sketch, full_tokens, summary_tokens, micro_tokens)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_record
-- Changes no row if the version has changed since it was read; the writer then raises a conflict.
update records set
  "user" = ?5, agent = ?6, session = ?7, task = ?8, private = ?9, text = ?10, summary = ?11, micro = ?12, tags = ?13,
  entities = ?14, paths = ?15, subject = ?16, attribute = ?17, status = ?18, outcome = ?19, salience = ?20,
  confidence = ?21, uses = ?22, wins = ?23, trust = ?24, pinned = ?25, origin = ?26, key = ?27, data = ?28,
  created = ?29, updated = ?30, valid_from = ?31, valid_to = ?32, hash = ?33, version = ?34, sketch = ?35,
  full_tokens = ?36, summary_tokens = ?37, micro_tokens = ?38
where project = ?1 and doc = ?2 and id = ?3 and kind = ?4 and version = ?34 - 1

-- name: count_confirmation
update records set data = :data, updated = :updated where project = :project and id = :id

-- name: count_use
update records set uses = uses + :uses, wins = wins + :wins where project = :project and id = :id

-- name: delete_record
delete from records where project = :project and doc = :doc

-- name: document_frequencies
select term, kind, field, cast(sum(size) as bigint) from postings
where project = :project and term {in_texts terms}
group by term, kind, field

-- name: index_sizes
select kind, docs, tokens from volumes where project = :project

-- name: grow_index_size
insert into volumes (project, kind, docs, tokens) values (:project, :kind, :docs, :tokens)
on conflict (project, kind) do update set docs = volumes.docs + excluded.docs, tokens = volumes.tokens + excluded.tokens

-- name: every_block
select term, kind, field, first, docs, codes from postings where project = :project
and (term, kind, field, first) > (:term, :kind, :field, :first) order by term, kind, field, first limit 5000

-- name: docs_matching
select doc, kind from records where project = :project and kind {in_texts kinds}
and status = 'active' and {visible} and {matches_filters}

-- name: delete_names
delete from names where project = :project and doc = :doc

-- name: entities_by_name
select n.name, n.doc from names n where n.project = :project and n.name {in_texts names} {sorted_by n.name, n.doc}

-- name: add_link
insert into links (project, src, name, dst, weight) values (:project, :src, :name, :dst, :weight)
on conflict (project, src, name, dst) do update set weight = excluded.weight

-- name: delete_link
delete from links where project = :project and src = :src and name = :name and dst = :dst

-- name: links_from
select src, name, dst, weight from links
where project = :project and src {in_texts ids}
and (cast(:names as json) is null or name {in_texts names}) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: links_to
-- Without the hint SQLite reads every link of the project: 12 instead of 0.1 ms among 100,000.
select src, name, dst, weight from links {indexed_by links_back}
where project = :project and dst {in_texts ids}
and (cast(:names as json) is null or name {in_texts names}) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: relations
select src, name, dst, weight from (
  select src, name, dst, weight from links where project = :project and src {in_texts ids}
  union
  select src, name, dst, weight from links {indexed_by links_back}
  where project = :project and dst {in_texts ids}
) relation
where not name {in_texts structural_links}
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
select id, version, change, at, verb, before from history {indexed_by history_change}
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

-- name: delete_vectors
delete from vectors
where project = :project and space in (select space from spaces where space <> :keep_space) and doc = :doc returning space

-- name: segment
select latest, removed from segments where project = :project and space = :space

-- name: grow_segment
insert into segments (project, space, latest, removed, vectors) values (:project, :space, :latest, 0, :count)
on conflict (project, space) do update set latest = excluded.latest, vectors = segments.vectors + excluded.vectors

-- name: shrink_segment
update segments set latest = latest + 1, removed = latest + 1, vectors = vectors - :count
where project = :project and space = :space

-- name: docs_with_vector
select doc from vectors where project = :project and space = :space and doc {in_numbers docs}

-- name: count_missing_vectors
-- From two totals that every write keeps, because this runs with each context.
select (select cast(coalesce(sum(docs), 0) as bigint) from volumes where project = :project)
  - coalesce((select vectors from segments where project = :project and space = :space), 0)

-- name: records_without_vector
select {record_columns} from records
where project = :project and doc > :after and not exists
  (select 1 from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)
order by doc limit :limit

-- name: texts_without_vector
select doc, id, text from records
where project = :project and id {in_texts ids} and not exists
  (select 1 from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)

-- name: max_doc
select coalesce(max(doc), 0) from records where project = :project

-- name: embedding_namespaces
select s.fingerprint, s.dim, g.vectors from segments g join spaces s on s.space = g.space
where g.project = :project and g.vectors > 0 order by s.space

-- name: add_receipt
insert into receipts (project, id, "user", agent, session, created, line, body)
values (:project, :id, :user, :agent, :session, :created, :line, :body)
on conflict (project, id) do update
set session = excluded.session, created = excluded.created, line = excluded.line, body = excluded.body

-- name: update_receipt
update receipts set body = :body, line = :line where project = :project and id = :id

-- name: receipt
select body from receipts where project = :project and id = :id and {own_scope}

-- name: receipts
select {receipt_columns} from receipts where project = :project and {own_scope} order by created desc, id desc limit :limit

-- name: receipt_summaries
select line from receipts
where project = :project and created >= :since and (created, id) < (:created, :id) and line <> '' and {own_scope}
order by created desc, id desc limit :limit

-- name: receipt_summaries_of_session
select line from receipts
where project = :project and session = :in_session and created >= :since and (created, id) < (:created, :id) and line <> ''
and {own_scope} order by created desc, id desc limit :limit

-- name: receipt_sessions
select session, count(*), max(created) from receipts where project = :project and session is not null and {own_scope}
group by session order by max(created) desc, session limit :limit

-- name: receipt_agents
select distinct agent from receipts
where project = :project and agent is not null and ("user" is null or "user" = :user) order by agent

-- name: items_shown_by
select i.receipt, i.record from receipt_items i join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.receipt {in_texts ids} and {own_scope} order by i.receipt, i.record

-- name: every_receipt
select id, body from receipts where project = :project and id > :after order by id limit 500

-- name: oldest_receipt
select created from receipts where project = :project order by created limit 1

-- name: old_receipts
select id from receipts where project = :project and created < :before

-- name: receipt_bytes
select cast(coalesce(sum({receipt_size}), 0) as bigint) from receipts where project = :project

-- name: receipt_sizes
select id, {receipt_size} from receipts where project = :project order by created desc, id desc

-- name: delete_receipts
delete from receipts where project = :project and id {in_texts ids}

-- name: delete_items_of_receipts
delete from receipt_items where project = :project and receipt {in_texts ids}

-- name: delete_items_of_record
delete from receipt_items where project = :project and record = :record

-- name: newest_event
select created from records where project = :project and kind = 'event' order by created desc limit 1

-- name: oldest_event_to_keep
select created from records where project = :project and kind = 'event' order by created desc limit 1 offset :newer_events

-- name: old_events
select created, doc from records
where project = :project and kind = 'event' and (created, doc) > (:created, :doc) and created < :until
order by created, doc limit :limit

-- name: expired_events
select {record_columns} from records where project = :project and doc {in_numbers docs} and {expired}

-- name: count_expired_events
select count(*) from records where project = :project and kind = 'event' and {expired}

-- name: count_records
select kind, status, count(*) from records where project = :project and {owned_or_shared} group by kind, status

-- name: growth
-- By number, which is the order on disk: half the time of the other indexes.
select
  coalesce(min(created), 0),
  count(*) filter (where created >= :since),
  count(*) filter (where kind = 'fact' and {live}),
  count(*) filter (where kind = 'fact' and {live} and cast({as_json data} ->> 'confirmations' as numeric) > 0)
from records {indexed_by records_doc} where project = :project and {visible} and {not_internal}

-- name: growth_by_day
select created / 86400000, count(*) from records {indexed_by records_doc}
where project = :project and created >= :since and {visible} and {not_internal} group by 1 order by 1

-- name: count_rest
select
  (select count(*) from links where project = :project and ({any_owner} or (
    exists (select 1 from records where project = :project and id = links.src and {owned_or_shared})
    and exists (select 1 from records where project = :project and id = links.dst and {owned_or_shared})))),
  (select count(*) from history where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and id = history.id and {owned_or_shared}))),
  (select count(*) from receipts where project = :project and {owned_or_shared}),
  (select cast(coalesce(sum({receipt_size}), 0) as bigint) from receipts where project = :project and {owned_or_shared}),
  (select count(*) from vectors where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and doc = vectors.doc and {owned_or_shared})))

-- name: count_indexed
select
  (select count(*) from records where project = :project),
  (select cast(coalesce(sum(docs), 0) as bigint) from volumes where project = :project)

-- name: clear_postings
delete from postings where project = :project

-- name: clear_volumes
delete from volumes where project = :project

-- name: clear_names
delete from names where project = :project
