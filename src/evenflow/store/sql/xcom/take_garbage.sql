-- Objects to delete, the oldest first, for the caller; other callers take them when they are not deleted after a while. SKIP
-- LOCKED: another API server is just taking those. What a try may leave is not looked for while it runs.
update xcom_garbage set at = now() + interval '10 minutes'
where object in (select object from xcom_garbage 
                 where at <= now()
                   and not (object like '%%-*' and exists (select from dispatch where epoch = split_part(object, '-', 1)::bigint))
                 order by at limit %(limit)s for update skip locked)
returning object
