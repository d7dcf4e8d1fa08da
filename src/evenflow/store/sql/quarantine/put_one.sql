-- Sets aside what a DAG or a backfill would have made.
insert into quarantine (kind, object, reason) values (%(kind)s, %(object)s, %(reason)s)
on conflict (kind, object) do update set since = now(), reason = excluded.reason
