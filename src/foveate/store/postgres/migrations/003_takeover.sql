-- A server that took over may give a transaction the number of one that it never saw. So a project remembers when its latest
-- changes began, in microseconds: what became of a commit that was not answered can be told apart from another's.
alter table projects add column recent bigint[] not null default '{}';

-- The marks around untrusted text are made from a secret. A member knows that of its own projects, never the store's: that
-- is drawn anew, since members could read it before.
update meta set value = encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex')
where name = 'secret';
alter table meta enable row level security;
create policy not_the_secret on meta for select using (name <> 'secret');

create view secrets with (security_barrier) as
select p.name, encode(sha256(convert_to(m.value || '/' || p.name, 'UTF8')), 'hex') as secret
from projects p cross join meta m
where m.name = 'secret' and p.project in (select project from members where role = current_user);

-- Nobody's wrong word on how many dimensions an embedder has is in the way of whoever comes to use it.
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
