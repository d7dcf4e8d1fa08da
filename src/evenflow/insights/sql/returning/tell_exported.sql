-- How far history has been exported: retention may delete what was written before. It never goes back.
insert into exported (past, at) values (%(past)s, %(at)s)
on conflict (is_only) do update set past = excluded.past, at = excluded.at
where exported.past <= excluded.past
