-- A space is the name of an embedder with its dimensions, as in a shared store: there, a user who writes vectors of wrong
-- dimensions must not prevent others from using that embedder.
create table measured (
  space       integer primary key,
  fingerprint text not null,
  dim         integer not null,
  unique (fingerprint, dim)
) strict;

insert into measured select space, fingerprint, dim from spaces;

drop table spaces;
alter table measured rename to spaces;
