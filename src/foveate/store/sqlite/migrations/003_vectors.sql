-- Every vector that is stored in a project and space gets the next number, and every removal uses one. A process that caches
-- vectors reads those with higher numbers than it has. The kind of a record never changes, so it can be stored with the vector.
alter table vectors add column kind integer not null default 0;
alter table vectors add column seq integer not null default 0;
update vectors set seq = rowid,
  kind = coalesce((select k.kind from records r join kinds k on k.name = r.kind where r.project = vectors.project and r.doc = vectors.doc), 0);
create unique index vectors_seq on vectors (project, space, seq);

create table segments (
  project integer not null,
  space   integer not null,
  latest  integer not null,             -- the number of the last change
  removed integer not null,             -- and of the last that took a vector away
  vectors integer not null,
  primary key (project, space)
) without rowid, strict;

insert into segments (project, space, latest, removed, vectors)
select project, space, max(seq), max(seq), count(*) from vectors group by project, space;
