-- A receipt gets a line: what a list, a session's timeline and the metrics show of it, as JSON, so that none of them unpacks
-- a body. One of before has none: its line and its session are taken from its body when they are first asked for.
alter table receipts add column session text collate "C", add column line text;

-- With its size, so that the cap on bytes is watched without reading a single receipt.
drop index receipts_created;
create index receipts_created on receipts (project, created, id, (length(body) + coalesce(octet_length(line), 0)));
create index receipts_session on receipts (project, session, created, id, "user", agent) where session is not null;
create index receipts_without_line on receipts (project, id) where line is null;
