-- Commit marks: when the latest changes of a project began, in microseconds. A server that took over may give a transaction the
-- number of one that it never saw, so the number alone does not prove that a commit succeeded (decision 030).
alter table projects add column recent bigint[] not null default '{}';

-- Quote tags are derived from a secret. A member may know the one of its own projects, but not the store's, which is replaced
-- here because members could read it before.
update meta set value = encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex')
where name = 'secret';
alter table meta enable row level security;
create policy not_the_secret on meta for select using (name <> 'secret');

create view secrets with (security_barrier) as
select p.name, encode(sha256(convert_to(m.value || '/' || p.name, 'UTF8')), 'hex') as secret
from projects p cross join meta m
where m.name = 'secret' and p.project in (select project from members where role = current_user);

-- A member that stores a wrong number of dimensions for an embedder must not block the others that use it.
alter table spaces drop constraint spaces_fingerprint_key, add unique (fingerprint, dim);

do $$
declare
  member text;
begin
  for member in select distinct m.role from members m join pg_roles r on r.rolname = m.role loop
    execute format('grant update (recent) on projects to %I', member);
    execute format('grant select on secrets to %I', member);
  end loop;
end
$$;
