-- Objects to be deleted, the oldest first, for who takes them now: others take them when that has not deleted them after a while. SKIP
-- LOCKED: another API server is just taking those.
update xcom_garbage set at = now() + interval '10 minutes'
where object in (select object from xcom_garbage where at <= now() order by at limit %(limit)s for update skip locked)
returning object
