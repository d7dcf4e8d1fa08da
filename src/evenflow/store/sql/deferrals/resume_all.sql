-- Deferred task instances that resume: what it is for, and that no triggerer has them any more. What they hold is from now on held
-- by their dispatches; what resumes in the ordinary way takes all of it again later. Compare-and-set on the epoch of the deferral:
-- the caller holds the locks of the runs, so a miss is a bug and rolls back.
with resumed as (
    update deferral f
    set purpose = c.purpose, event = decode(c.event, 'base64'), event_at = now(), reason = coalesce(c.reason, f.reason),
        intent = coalesce(c.intent::jsonb, f.intent), holds = '{}', pool_slots = 0, retake_slots = case when c.direct then 0
            else f.pool_slots + f.retake_slots end,
        retake = case when c.direct then '{}' when f.retake_slots > 0 then f.retake || f.holds else f.holds || f.retake end,
        triggerer_id = null, claimed_at = null, claim_key = null
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[], %(purposes)s::text[],
        %(events)s::text[],
                %(reasons)s::text[], %(intents)s::text[], %(direct)s::bool[])
         as c (run_key, task_index, map_index, epoch, purpose, event, reason, intent, direct)
    where f.run_key = c.run_key and f.task_index = c.task_index and f.map_index = c.map_index and f.epoch = c.epoch
    returning 1
)
select expect_rows(count(*), %(expected)s, 'Resumes') from resumed
