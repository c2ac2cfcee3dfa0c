-- A receipt gets a line: its summary for lists, timelines and metrics as JSON, so that they need not unpack bodies. It is
-- stored before the body, because a body may fill several pages that would otherwise be read first.
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

-- The index contains the size, so that the limit on bytes is checked without reading a receipt.
create index receipts_created on receipts (project, created, id, length(body) + coalesce(octet_length(line), 0));
create index receipts_session on receipts (project, session, created, id, user, agent) where session is not null;
create index receipts_without_line on receipts (project, id) where line is null;

create index receipt_items_receipt on receipt_items (project, receipt);
