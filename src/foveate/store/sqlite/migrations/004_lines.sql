-- A receipt gets a line: what a list, a session's timeline and the metrics show of it, as JSON, so that none of them unpacks
-- a body. It stands before the body, which may fill several pages that nobody has to walk then. One of before has none: its
-- line and its session are taken from its body when they are first asked for.
create table lined (
  project integer not null,
  id      text not null,
  user    text,
  agent   text,
  session text,
  created integer not null,
  line    text,
  body    blob not null,
  primary key (project, id)
) strict;

insert into lined (project, id, user, agent, created, body)
select project, id, user, agent, created, body from receipts order by rowid;

drop table receipts;
alter table lined rename to receipts;

-- With its size, so that the cap on bytes is watched without reading a single receipt.
create index receipts_created on receipts (project, created, id, length(body) + coalesce(octet_length(line), 0));
create index receipts_session on receipts (project, session, created, id, user, agent) where session is not null;
create index receipts_without_line on receipts (project, id) where line is null;

create index receipt_items_receipt on receipt_items (project, receipt);
