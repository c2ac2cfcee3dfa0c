-- Records are numbered within their project by a counter that never goes back, and postings are stored in blocks. So the pages
-- that a search reads do not depend on other projects. The index itself is rebuilt from the records when the store is opened.

alter table projects add column docs integer not null default 0;  -- the last number given to a record
update projects set docs = (select coalesce(max(doc), 0) from records where records.project = projects.project);

create table numbered (
  project    integer not null,
  doc        integer not null,
  id         text not null,
  kind       text not null,
  user       text,
  agent      text,
  session    text,
  task       text,
  private    integer not null,
  text       text not null,
  summary    text,                      -- null: the same as text
  micro      text,                      -- null: the same as summary
  tags       text,                      -- JSON lists; null: none
  entities   text,
  paths      text,
  subject    text,
  attribute  text,
  status     text not null,
  outcome    text,
  salience   real not null,
  confidence real not null,
  uses       integer not null,
  wins       integer not null,
  trust      text not null,
  pinned     integer not null,
  origin     text,
  key        text,
  data       text,
  created    integer not null,          -- times: milliseconds, UTC
  updated    integer not null,
  valid_from integer not null,
  valid_to   integer,
  hash       text not null,
  version    integer not null,
  sketch     blob not null,
  full_tokens    integer not null,      -- of the rendered line, by meta.counter and meta.renderer
  summary_tokens integer not null,
  micro_tokens   integer not null
) strict;

insert into numbered
select project, doc, id, kind, user, agent, session, task, private, text, summary, micro, tags, entities, paths, subject,
  attribute, status, outcome, salience, confidence, uses, wins, trust, pinned, origin, key, data, created, updated,
  valid_from, valid_to, hash, version, sketch, full_tokens, summary_tokens, micro_tokens
from records order by doc;

drop table records;
alter table numbered rename to records;

create unique index records_doc on records (project, doc);
create unique index records_id on records (project, id);
-- The owner is part of the key, so that a caller cannot find out which keys other owners have used.
create unique index records_key on records (project, key, coalesce(user, ''), coalesce(agent, ''),
  case private when 1 then coalesce(session, '') end, case private when 1 then coalesce(task, '') end)
where key is not null;
create index records_hash on records (project, hash);
create index records_kind on records (project, kind, created, doc);
create index records_session on records (project, session, created, doc) where session is not null;
create index records_keyed on records (project, subject, attribute) where attribute is not null;
create index records_pinned on records (project, pinned) where pinned = 1;

-- A block holds the next 128 records that have a term in a field: their numbers and, for each, a code of the term frequency and
-- the length of the text (`posting_blocks.py`). Document frequencies are the sums of `size`; a stored count would need locks.
drop table postings;
create table postings (
  project integer not null,
  term    text not null,
  kind    integer not null,
  field   integer not null,
  first   integer not null,             -- no record of the block has a lower number, none of an earlier one a higher
  size    integer not null,
  docs    blob not null,
  codes   blob not null,
  primary key (project, term, kind, field, first)
) without rowid, strict;

-- Number of indexed records of each kind, and of the terms in their texts.
drop table shelves;
create table volumes (
  project integer not null,
  kind    integer not null,
  docs    integer not null,
  tokens  integer not null,
  primary key (project, kind)
) without rowid, strict;

delete from meta where name = 'analyser';
