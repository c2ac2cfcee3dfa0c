-- The queries of a PostgreSQL store by name. They return the same columns in the same order as those of SQLite, where comments
-- explain what both have in common. A name in braces stands for the text of another query of this file.
--
-- A list is passed as JSON. `= any (array(select ...))` makes the planner expect a few values and look up each of them in the
-- index. Where it would still read a whole project, `lateral (... offset 0)` prevents that: a subquery with `offset` is not
-- merged into the outer query. Rows that SQLite returns in the order of an index have an explicit `order by` here.

-- name: meta
select name, value from meta

-- name: secret
-- A member may not read the secret of the store. The view `secrets` gives it one that is derived for its project.
select encode(sha256(convert_to(value || '/' || :name, 'UTF8')), 'hex') from meta where name = 'secret'
union all
select secret from secrets where name = :name
limit 1

-- name: set_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value

-- name: add_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do nothing

-- name: delete_meta
delete from meta where name = :name

-- name: project
select project, revision, docs from projects where name = :name

-- name: lock_project
-- `no key update` is the weakest lock that excludes other writers.
select project, made_by from projects where name = :name for no key update

-- name: made_by
select made_by from projects where name = :name

-- name: add_project
insert into projects (name, made_by) values (:name, '') on conflict (name) do nothing

-- name: set_made_by
update projects set made_by = :made_by where project = :project

-- name: project_names
select project, name from projects order by project

-- name: bump_revision
-- The start time of the transaction is its commit mark. The newest 63 and this one make 64, as in `commits.py`.
update projects set revision = revision + 1, docs = :docs,
  recent = recent[greatest(cardinality(recent) - 62, 1):] || (extract(epoch from transaction_timestamp()) * 1000000)::bigint
where project = :project

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
:user::text is null and :agent::text is null

-- name: owned_or_shared
-- For counts. Unlike `visible`, a scope without a user counts the records of all users.
(:user::text is null or "user" is null or "user" = :user) and (:agent::text is null or agent is null or agent = :agent)

-- name: own_scope
("user" is null or "user" = :user) and (agent is null or agent = :agent)

-- name: receipt_columns
id, created, body, session, line

-- name: receipt_size
length(body) + coalesce(octet_length(line), 0)

-- name: expired
-- An event stays if it is pinned, if a link begins or ends at it, or if it belongs to an unfinished task.
pinned = 0 and (created < :surplus_before or (created < :before and updated < :before))
and not exists (select 1 from links l where l.project = :project and l.src = records.id)
and not exists (select 1 from links l where l.project = :project and l.dst = records.id)
and (task is null or not exists (select 1 from records t
  where t.project = :project and t.id = records.task and t.kind = 'task' and t.status = 'active'
  and coalesce(t.data::json ->> 'state', 'open') not in ('completed', 'failed')))

-- name: live
status not in ('retired', 'archived')

-- name: matches_filters
-- A parameter that is null does not filter.
(:since::bigint is null or created >= :since) and (:until::bigint is null or created < :until)
and (:trusts::json is null or trust = any (array(select json_array_elements_text(:trusts))))
and (:tags::json is null or exists (select 1 from json_array_elements_text(tags::json) t
  where t = any (array(select json_array_elements_text(:tags)))))
and (:only_kinds::json is null or kind = any (array(select json_array_elements_text(:only_kinds))))
and (:event_types::json is null or kind <> 'event'
  or data::json ->> 'type' = any (array(select json_array_elements_text(:event_types))))
and (:entity_types::json is null or kind <> 'entity'
  or data::json ->> 'type' = any (array(select json_array_elements_text(:entity_types))))

-- name: not_internal
kind <> all (array(select json_array_elements_text(:internal_kinds)))

-- name: by_ids
select {record_columns} from records
where project = :project and id = any (array(select json_array_elements_text(:ids))) and {visible} order by id

-- name: by_docs
select {record_columns} from records
where project = :project and doc = any (array(select json_array_elements_text(:docs)::bigint))
and {live} and {visible} and {matches_filters} order by doc

-- name: session_neighbors
-- The pair (created, doc) orders records of the same millisecond, and both are in the index.
select h.id,
  (select coalesce(json_agg(doc order by created, doc), '[]')::text from (
    select created, doc from records where project = :project and session = h.session
    and (created, doc) > (h.created, h.doc) and kind = any (array(select json_array_elements_text(:kinds)))
    and {live} and {visible} order by created, doc limit :max_distance) after),
  (select coalesce(json_agg(doc order by created desc, doc desc), '[]')::text from (
    select created, doc from records where project = :project and session = h.session
    and (created, doc) < (h.created, h.doc) and kind = any (array(select json_array_elements_text(:kinds)))
    and {live} and {visible} order by created desc, doc desc limit :max_distance) before)
from records h
where h.project = :project and h.id = any (array(select json_array_elements_text(:ids))) and h.session is not null
order by h.id

-- name: by_key
select {record_columns} from records
where project = :project and key = :key and "user" is not distinct from :user and agent is not distinct from :agent
and (private = 0 or (session is not distinct from :session and task is not distinct from :task)) order by doc

-- name: by_key_visible
select {record_columns} from records where project = :project and key = :key and {visible}

-- name: count_kind
select count(*) from records where project = :project and kind = :kind and {live} and {visible}

-- name: by_hash
select doc, id, status, valid_from from records where project = :project and hash = :hash

-- name: attribute_values
select {record_columns} from records
where project = :project and subject = :subject and attribute = :attribute and status in ('active', 'disputed')
and "user" is not distinct from :user and agent is not distinct from :agent order by doc

-- name: doc_of
select doc, kind, status from records where project = :project and id = :id

-- name: always_on
-- `lateral` with `offset 0` makes this one index range for each kind.
select {record_columns} from (select distinct json_array_elements_text(:kinds) as wanted) k
cross join lateral (select * from records
  where project = :project and kind = wanted and status = 'active' and {visible} order by created, doc offset 0) found
order by salience desc, created, id

-- name: pinned
select {record_columns} from records
where project = :project and pinned = 1 and status = 'active' and {visible}
and (:kinds::json is null or kind = any (array(select json_array_elements_text(:kinds))))
order by salience desc, created, id

-- name: recent
select {record_columns} from records
where project = :project and kind = :kind and {live} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: recent_of_session
select {record_columns} from records
where project = :project and session = :in_session and kind = :kind and {live} and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: sessions
-- The recursion jumps from one session to the next in the index, instead of reading every record for `distinct`.
with recursive named (name) as (
  select min(session) from records where project = :project and session is not null
  union all
  select (select min(r.session) from records r where r.project = :project and r.session > named.name)
  from named where named.name is not null
)
select name, latest from (
  select name, (
    select created from records
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

-- name: recent_archived
select {record_columns} from records
where project = :project and kind = :kind and status = 'archived' and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: recent_archived_of_session
select {record_columns} from records
where project = :project and session = :in_session and kind = :kind and status = 'archived' and {visible} and {matches_filters}
order by created desc, doc desc limit :limit

-- name: all_records
-- In pages, so that an export of a large project needs little memory.
select {record_columns} from records where project = :project and {visible} and doc > :after order by doc limit 500

-- name: records_page
select {record_columns} from records
where project = :project and {visible} and {matches_filters} and (:only_kinds::json is not null or {not_internal})
and (:status::text is null or status = :status)
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

-- name: update_tokens
-- Unchanged rows are not written, because each write leaves a dead row behind.
update records r set full_tokens = n.full_tokens, summary_tokens = n.summary_tokens, micro_tokens = n.micro_tokens
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
  n (project, doc, full_tokens, summary_tokens, micro_tokens)
where r.project = n.project and r.doc = n.doc
and (r.full_tokens, r.summary_tokens, r.micro_tokens) is distinct from (n.full_tokens, n.summary_tokens, n.micro_tokens)

-- name: delete_record
delete from records where project = :project and doc = :doc

-- name: document_frequencies
select term, kind, field, sum(size)::bigint from postings
where project = :project and term = any (array(select json_array_elements_text(:terms)))
group by term, kind, field

-- name: terms_with_prefix
-- The recursion jumps from one term to the next in the index. 20 terms are tried, since some are of other kinds only.
with recursive found (term) as (
  select min(term) from postings where project = :project and term >= :prefix and term < :end
  union all
  select (select min(p.term) from postings p where p.project = :project and p.term > found.term and p.term < :end)
  from found where found.term is not null
)
select term from (select term from found where term is not null limit 20) found where exists (select 1 from postings p
  where p.project = :project and p.term = found.term
  and p.kind = any (array(select json_array_elements_text(:kinds)::bigint)))
limit 5

-- name: index_sizes
select kind, docs, tokens from volumes where project = :project

-- name: grow_index_size
insert into volumes (project, kind, docs, tokens) values (:project, :kind, :docs, :tokens)
on conflict (project, kind) do update set docs = volumes.docs + excluded.docs, tokens = volumes.tokens + excluded.tokens

-- name: blocks
-- `lateral` makes each list one lookup in the key.
select p.kind, p.term, p.field, p.docs, p.codes
from json_array_elements(:lists) l
cross join lateral (select kind, term, field, docs, codes from postings
  where project = :project and term = l ->> 0 and kind = any (array(select json_array_elements_text(:kinds)::bigint))
  and field = (l ->> 1)::bigint offset 0) p

-- name: blocks_for_docs
-- The block of a list in which a record is, or belongs: the last one that begins at or below its number.
select p.term, p.kind, p.field, p.first, p.docs, p.codes
from json_array_elements(:lists) l
cross join lateral (select term, kind, field, first, docs, codes from postings
  where project = :project and term = l ->> 0 and kind = (l ->> 1)::bigint and field = (l ->> 2)::bigint
  and first <= (l ->> 3)::bigint order by first desc limit 1) p

-- name: every_block
select term, kind, field, first, docs, codes from postings where project = :project
and (term, kind, field, first) > (:term, :kind, :field, :first) order by term, kind, field, first limit 5000

-- name: put_block
-- All blocks in one statement, with an array for each column.
insert into postings (project, term, kind, field, first, size, docs, codes)
select * from unnest(?::bigint[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bytea[], ?::bytea[])
on conflict (project, term, kind, field, first)
do update set size = excluded.size, docs = excluded.docs, codes = excluded.codes

-- name: delete_block
delete from postings p using unnest(?::bigint[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[])
  gone (project, term, kind, field, first)
where p.project = gone.project and p.term = gone.term and p.kind = gone.kind and p.field = gone.field and p.first = gone.first

-- name: docs_matching
select doc, kind from records where project = :project and kind = any (array(select json_array_elements_text(:kinds)))
and status = 'active' and {visible} and {matches_filters}

-- name: add_name
insert into names (project, name, doc) select * from unnest(?::bigint[], ?::text[], ?::bigint[]) on conflict do nothing

-- name: delete_names
delete from names where project = :project and doc = :doc

-- name: entities_by_name
select n.name, n.doc from names n
where n.project = :project and n.name = any (array(select json_array_elements_text(:names))) order by n.name, n.doc

-- name: add_link
insert into links (project, src, name, dst, weight) values (:project, :src, :name, :dst, :weight)
on conflict (project, src, name, dst) do update set weight = excluded.weight

-- name: delete_link
delete from links where project = :project and src = :src and name = :name and dst = :dst

-- name: delete_links_of
delete from links where project = :project and (src = :id or dst = :id)

-- name: links_from
select src, name, dst, weight from links
where project = :project and src = any (array(select json_array_elements_text(:ids)))
and (:names::json is null or name = any (array(select json_array_elements_text(:names)))) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: links_to
select src, name, dst, weight from links
where project = :project and dst = any (array(select json_array_elements_text(:ids)))
and (:names::json is null or name = any (array(select json_array_elements_text(:names)))) and {both_ends_visible}
order by weight desc, src, name, dst

-- name: relations
select src, name, dst, weight from (
  select src, name, dst, weight from links
  where project = :project and src = any (array(select json_array_elements_text(:ids)))
  union
  select src, name, dst, weight from links
  where project = :project and dst = any (array(select json_array_elements_text(:ids)))
) found
where name <> all (array(select json_array_elements_text(:structural_links)))
and exists (select 1 from records
  where project = :project and id = found.src and kind = 'entity' and status = 'active' and {visible})
and exists (select 1 from records
  where project = :project and id = found.dst and kind = 'entity' and status = 'active' and {visible})
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
select id, version, change, at, verb, before from history where project = :project and change = :change order by id, version

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
insert into vectors (project, space, doc, kind, seq, vector)
select project, space, doc, kind, seq, vector::halfvec
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[])
  new (project, space, doc, kind, seq, vector)
on conflict (project, space, doc) do update set kind = excluded.kind, seq = excluded.seq, vector = excluded.vector

-- name: delete_vectors
delete from vectors
where project = :project and space in (select space from spaces where space <> :keep_space) and doc = :doc returning space

-- name: drop_vectors
delete from vectors where project = :project and space = :space and doc in (
  select doc from vectors where project = :project and space = :space order by doc limit :limit
)

-- name: segment
select latest, removed from segments where project = :project and space = :space

-- name: grow_segment
insert into segments (project, space, latest, removed, vectors) values (:project, :space, :latest, 0, :count)
on conflict (project, space) do update set latest = excluded.latest, vectors = segments.vectors + excluded.vectors

-- name: shrink_segment
update segments set latest = latest + 1, removed = latest + 1, vectors = vectors - :count
where project = :project and space = :space

-- name: docs_with_vector
select doc from vectors
where project = :project and space = :space and doc = any (array(select json_array_elements_text(:docs)::bigint))

-- name: cosine
-- The query vector comes as the sum of two of half floats (`vectors.py`). Rounded, so that both databases give one order.
round((- (v.vector <#> :coarse::halfvec) - (v.vector <#> :fine::halfvec)) * 1e6) / 1e6

-- name: nearest
-- Scores every vector of the project and tests the filters on the best ones only. A row without a doc did not pass them.
with best as materialized (
  select doc, similarity from (
    select v.doc, {cosine} as similarity from vectors v where v.project = :project and v.space = :space
  ) scored
  where similarity > 0 order by similarity desc, doc limit :limit
)
select r.doc, least(b.similarity, 1.0), r.status = 'active', r.kind, (select count(*) from best)
from best b left join (
  select doc, status, kind from records
  where project = :project and doc = any (array(select doc from best)) and {live} and {visible} and {matches_filters}
) r on r.doc = b.doc

-- name: nearest_matching
-- Filters first. A group is (number, limit, kinds or null); each gets its best current hits and some superseded ones.
with groups as materialized (
  select (value ->> 0)::int as number, (value ->> 1)::bigint as max_hits,
    case when json_typeof(value -> 2) = 'array' then array(select json_array_elements_text(value -> 2)) end as kinds
  from json_array_elements(:groups) value
), scored as materialized (
  select v.doc, r.kind, r.status = 'active' as is_current, {cosine} as similarity
  from vectors v join (
    select doc, kind, status from records where project = :project and {live} and {visible} and {matches_filters}
    and (exists (select 1 from groups where kinds is null) or kind = any (array(select unnest(kinds) from groups)))
  ) r on r.doc = v.doc
  where v.project = :project and v.space = :space
)
select g.number, s.doc, least(s.similarity, 1.0), s.is_current
from groups g cross join lateral (
  (select doc, similarity, is_current from scored
  where similarity > 0 and is_current and (g.kinds is null or kind = any (g.kinds))
  order by similarity desc, doc limit g.max_hits)
  union all
  (select doc, similarity, is_current from scored
  where similarity > 0 and not is_current and (g.kinds is null or kind = any (g.kinds))
  order by similarity desc, doc limit :max_superseded)
) s

-- name: similarities
select v.doc, least(greatest({cosine}, 0.0), 1.0) from vectors v
where v.project = :project and v.space = :space
and v.doc = any (array(select json_array_elements_text(:docs)::bigint))

-- name: count_missing_vectors
-- From two totals that every write keeps, because this runs with each context.
select (select coalesce(sum(docs), 0)::bigint from volumes where project = :project)
  - coalesce((select vectors from segments where project = :project and space = :space), 0)

-- name: records_without_vector
select {record_columns} from records
where project = :project and doc > :after and not exists
  (select 1 from vectors v where v.project = :project and v.space = :space and v.doc = records.doc)
order by doc limit :limit

-- name: texts_without_vector
select doc, id, text from records
where project = :project and id = any (array(select json_array_elements_text(:ids))) and not exists
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

-- name: add_receipt_item
insert into receipt_items (project, record, receipt) select * from unnest(?::bigint[], ?::text[], ?::text[])
on conflict do nothing

-- name: receipt
select body from receipts where project = :project and id = :id and {own_scope}

-- name: receipts
select {receipt_columns} from receipts where project = :project and {own_scope} order by created desc, id desc limit :limit

-- name: receipt_summaries
select line from receipts where project = :project and line <> '' and {own_scope}
and (:created::bigint is null or (created, id) < (:created, :id)) order by created desc, id desc limit :limit

-- name: receipt_summaries_of_session
select line from receipts
where project = :project and session = :in_session and line <> '' and {own_scope}
and (:created::bigint is null or (created, id) < (:created, :id)) order by created desc, id desc limit :limit

-- name: receipt_summaries_since
select line from receipts where project = :project and created >= :since and line <> '' and {own_scope}
order by created desc, id desc limit :limit

-- name: receipt_sessions
select session, count(*), max(created) from receipts where project = :project and session is not null and {own_scope}
group by session order by max(created) desc, session limit :limit

-- name: receipt_agents
select distinct agent from receipts
where project = :project and agent is not null and ("user" is null or "user" = :user) order by agent

-- name: items_shown_by
select i.receipt, i.record from receipt_items i join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.receipt = any (array(select json_array_elements_text(:ids))) and {own_scope}
order by i.receipt, i.record

-- name: every_receipt
select id, body from receipts where project = :project and id > :after order by id limit 500

-- name: receipts_with_record
select {receipt_columns} from receipt_items i join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.record = :record and {own_scope} order by r.created desc, r.id limit :limit

-- name: oldest_receipt
select created from receipts where project = :project order by created limit 1

-- name: old_receipts
select id from receipts where project = :project and created < :before

-- name: receipt_bytes
select coalesce(sum({receipt_size}), 0)::bigint from receipts where project = :project

-- name: receipt_sizes
select id, {receipt_size} from receipts where project = :project order by created desc, id desc

-- name: delete_receipts
delete from receipts where project = :project and id = any (array(select json_array_elements_text(:ids)))

-- name: delete_items_of_receipts
delete from receipt_items where project = :project and receipt = any (array(select json_array_elements_text(:ids)))

-- name: newest_event
select created from records where project = :project and kind = 'event' order by created desc limit 1

-- name: oldest_event_to_keep
select created from records where project = :project and kind = 'event'
order by created desc limit 1 offset greatest(:max_events - 1, 0)

-- name: old_events
select created, doc from records
where project = :project and kind = 'event' and (created, doc) > (:created, :doc) and created < :until
order by created, doc limit :limit

-- name: expired_events
select {record_columns} from records
where project = :project and doc = any (array(select json_array_elements_text(:docs)::bigint)) and {expired}

-- name: count_expired_events
select count(*) from records where project = :project and kind = 'event' and {expired}

-- name: delete_items_of_record
delete from receipt_items where project = :project and record = :record

-- name: count_records
select kind, status, count(*) from records where project = :project and {owned_or_shared} group by kind, status order by kind, status

-- name: growth
select
  coalesce(min(created), 0),
  count(*) filter (where created >= :since),
  count(*) filter (where kind = 'fact' and {live}),
  count(*) filter (where kind = 'fact' and {live} and (data::json ->> 'confirmations')::numeric > 0)
from records where project = :project and {visible} and {not_internal}

-- name: growth_by_day
select created / 86400000, count(*) from records where project = :project and created >= :since and {visible} and {not_internal}
group by 1 order by 1

-- name: count_rest
select
  (select count(*) from links where project = :project and ({any_owner} or (
    exists (select 1 from records where project = :project and id = links.src and {owned_or_shared})
    and exists (select 1 from records where project = :project and id = links.dst and {owned_or_shared})))),
  (select count(*) from history where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and id = history.id and {owned_or_shared}))),
  (select count(*) from receipts where project = :project and {owned_or_shared}),
  (select coalesce(sum({receipt_size}), 0)::bigint from receipts where project = :project and {owned_or_shared}),
  (select count(*) from vectors where project = :project and ({any_owner} or
    exists (select 1 from records where project = :project and doc = vectors.doc and {owned_or_shared})))

-- name: count_indexed
select
  (select count(*) from records where project = :project),
  (select coalesce(sum(docs), 0)::bigint from volumes where project = :project)

-- name: clear_postings
delete from postings where project = :project

-- name: clear_volumes
delete from volumes where project = :project

-- name: clear_names
delete from names where project = :project

-- name: server_facts
select current_setting('server_version'), coalesce((select extversion from pg_extension where extname = 'vector'), 'none'),
  pg_database_size(current_database()),
  (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
    join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'foveate' and c.relkind = 'r')

-- name: add_member
insert into members (role, project) values (:role, :project) on conflict do nothing

-- name: delete_member
delete from members where role = :role and project = :project

-- name: count_memberships
select count(*) from members where role = :role

-- name: lock_grants
-- PostgreSQL fails if two transactions change the privileges of one table at once.
select 1 from (select pg_advisory_xact_lock(1719693670)) locked

-- name: role
select oid::bigint from pg_roles where rolname = :role

-- name: may_create_in_schema
select has_schema_privilege(:role::text, :schema::text, 'create')
