-- Makes an autoscaler the one that acts, for so long: if it is that already, or nobody is. No row: another one is.
insert into scaling_lease as l (holder, until)
values (%(holder)s, now() + make_interval(secs => %(lease_s)s))
on conflict (singleton) do update
set holder = excluded.holder, until = excluded.until
where l.holder = excluded.holder or l.until <= now()
returning extract(epoch from now())::float8 as now_s
