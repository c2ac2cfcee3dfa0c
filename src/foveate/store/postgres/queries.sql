-- The queries of a PostgreSQL store that differ from SQLite's, and the parts of the shared ones that do; see `sql/queries.sql`.
-- They return the same columns in the same order as those of SQLite.
--
-- `= any (array(select ...))` makes the planner expect a few values and look up each of them in the index. Where it would still
-- read a whole project, `lateral (... offset 0)` prevents that: a subquery with `offset` is not merged into the outer query.

-- name: in_texts
= any (array(select json_array_elements_text(:{})))

-- name: in_numbers
= any (array(select json_array_elements_text(:{})::bigint))

-- name: has_tag
exists (select 1 from json_array_elements_text(tags::json) t where t {in_texts tags})

-- name: as_json
{}::json

-- name: indexed_by
-- Nothing: PostgreSQL has no such hint.

-- name: sorted_by
order by {}

-- name: secret
-- A member may not read the secret of the store. The view `secrets` gives it one that is derived for its project.
select encode(sha256(convert_to(value || '/' || :name, 'UTF8')), 'hex') from meta where name = 'secret'
union all
select secret from secrets where name = :name
limit 1

-- name: lock_project
-- `no key update` is the weakest lock that excludes other writers.
select project, made_by from projects where name = :name for no key update

-- name: made_by
select made_by from projects where name = :name

-- name: add_project
insert into projects (name, made_by) values (:name, '') on conflict (name) do nothing

-- name: set_made_by
update projects set made_by = :made_by where project = :project

-- name: bump_revision
-- The start time of the transaction is its commit mark. The newest 63 and this one make 64, as in `commits.py`.
update projects set revision = revision + 1, docs = :docs,
  recent = recent[greatest(cardinality(recent) - 62, 1):] || (extract(epoch from transaction_timestamp()) * 1000000)::bigint
where project = :project

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

-- name: always_on
-- `lateral` with `offset 0` makes this one index range for each kind.
select {record_columns} from (select distinct json_array_elements_text(:kinds) as wanted) k
cross join lateral (select * from records
  where project = :project and kind = wanted and status = 'active' and {visible} order by created, doc offset 0) found
order by salience desc, created, id

-- name: update_tokens
-- Unchanged rows are not written, because each write leaves a dead row behind.
update records r set full_tokens = n.full_tokens, summary_tokens = n.summary_tokens, micro_tokens = n.micro_tokens
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
  n (project, doc, full_tokens, summary_tokens, micro_tokens)
where r.project = n.project and r.doc = n.doc
and (r.full_tokens, r.summary_tokens, r.micro_tokens) is distinct from (n.full_tokens, n.summary_tokens, n.micro_tokens)

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

-- name: add_name
insert into names (project, name, doc) select * from unnest(?::bigint[], ?::text[], ?::bigint[]) on conflict do nothing

-- name: delete_links_of
delete from links where project = :project and (src = :id or dst = :id)

-- name: add_vector
insert into vectors (project, space, doc, kind, seq, vector)
select project, space, doc, kind, seq, vector::halfvec
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[])
  new (project, space, doc, kind, seq, vector)
on conflict (project, space, doc) do update set kind = excluded.kind, seq = excluded.seq, vector = excluded.vector

-- name: drop_vectors
delete from vectors where project = :project and space = :space and doc in (
  select doc from vectors where project = :project and space = :space order by doc limit :limit
)

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

-- name: add_receipt_item
insert into receipt_items (project, record, receipt) select * from unnest(?::bigint[], ?::text[], ?::text[])
on conflict do nothing

-- name: receipts_with_record
select {receipt_columns} from receipt_items i join receipts r on r.project = i.project and r.id = i.receipt
where i.project = :project and i.record = :record and {own_scope} order by r.created desc, r.id limit :limit

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
