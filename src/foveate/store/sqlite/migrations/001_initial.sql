-- One table holds the records of all kinds, one the links, one the receipts. Every key begins with the project, so that no
-- query can forget it and the tables can be distributed by project.

create table meta (
  name  text primary key,
  value text not null
) without rowid, strict;

create table projects (
  project  integer primary key,
  name     text not null unique,
  revision integer not null default 0
) strict;

create table kinds (
  kind integer primary key,
  name text not null unique
) strict;

create table records (
  doc        integer primary key,
  project    integer not null,
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

create unique index records_id on records (project, id);
-- The owner is part of the key, so that a caller cannot find out which keys other owners have used.
create unique index records_key on records (project, key, coalesce(user, ''), coalesce(agent, ''),
  case private when 1 then coalesce(session, '') end, case private when 1 then coalesce(task, '') end)
where key is not null;
create index records_hash on records (project, hash);
create index records_kind on records (project, kind, created);
create index records_session on records (project, session, created) where session is not null;
create index records_keyed on records (project, subject, attribute) where attribute is not null;
create index records_pinned on records (project, pinned) where pinned = 1;

-- Term frequencies are stored for each field, so that field weights can be changed without a new index. Document frequencies
-- are counted, not stored: counting a term's rows costs a tenth of scoring them, and a stored count would need locks.
create table postings (
  project integer not null,
  shelf   integer not null,
  term    text not null,
  field   integer not null,
  doc     integer not null,
  kind    integer not null,
  tf      integer not null,
  len     integer not null,
  primary key (project, shelf, term, field, doc)
) without rowid, strict;

create table shelves (
  project integer not null,
  shelf   integer not null,
  docs    integer not null,
  tokens  integer not null,
  primary key (project, shelf)
) without rowid, strict;

-- Entities by name and alias, normalized so that spellings of one name are equal.
create table names (
  project integer not null,
  name    text not null,
  doc     integer not null,
  primary key (project, name, doc)
) without rowid, strict;

create table links (
  project integer not null,
  src     text not null,
  name    text not null,
  dst     text not null,
  weight  real not null,
  primary key (project, src, name, dst)
) without rowid, strict;

create index links_back on links (project, dst, name, src);

create table history (
  project integer not null,
  id      text not null,
  version integer not null,             -- the version that the change made
  change  text not null,                -- one step of a transaction: what was changed together is undone together
  at      integer not null,
  verb    text not null,
  before  blob,                         -- compressed JSON; null: created by this change
  primary key (project, id, version)
) strict;

create index history_change on history (project, change);

create table spaces (
  space       integer primary key,
  fingerprint text not null unique,
  dim         integer not null
) strict;

create table vectors (
  project integer not null,
  space   integer not null,
  doc     integer not null,
  vector  blob not null,                -- half floats, length one
  unique (project, space, doc)
) strict;

create table receipts (
  project integer not null,
  id      text not null,
  user    text,
  agent   text,
  created integer not null,
  body    blob not null,
  primary key (project, id)
) strict;

-- The index contains the size, so that the limit on bytes is checked without reading a receipt.
create index receipts_created on receipts (project, created, id, length(body));

create table receipt_items (
  project integer not null,
  record  text not null,
  receipt text not null,
  primary key (project, record, receipt)
) without rowid, strict;
