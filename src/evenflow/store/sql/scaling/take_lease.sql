-- Makes an autoscaler the acting one, for this time: if it is that already, or none acts. No row: another one acts.
insert into scaling_lease as l (holder, until)
values (%(holder)s, now() + make_interval(secs => %(lease_s)s))
on conflict (singleton) do update
set holder = excluded.holder, until = excluded.until
where l.holder = excluded.holder or l.until <= now()
returning extract(epoch from now())::float8 as now_s
