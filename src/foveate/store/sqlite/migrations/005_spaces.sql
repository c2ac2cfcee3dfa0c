-- An embedder's name and its dimensions together are a space, as in the shared store: there, nobody's wrong word on the
-- dimensions is in the way of whoever comes to use it.
create table measured (
  space       integer primary key,
  fingerprint text not null,
  dim         integer not null,
  unique (fingerprint, dim)
) strict;

insert into measured select space, fingerprint, dim from spaces;

drop table spaces;
alter table measured rename to spaces;
