-- `line` is the summary of a receipt as JSON, for lists, timelines and metrics, so that these do not unpack bodies.
alter table receipts add column session text collate "C", add column line text;

-- Includes the size, so that the limit on bytes is checked from the index alone.
drop index receipts_created;
create index receipts_created on receipts (project, created, id, (length(body) + coalesce(octet_length(line), 0)));
create index receipts_session on receipts (project, session, created, id, "user", agent) where session is not null;
create index receipts_without_line on receipts (project, id) where line is null;
