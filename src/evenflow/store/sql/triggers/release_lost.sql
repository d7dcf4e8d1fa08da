-- Triggers that a triggerer has claimed and does not know of, so that any may claim them; wakes triggerers. Their answer was lost.
with released as (
    update deferral set triggerer_id = null, claim_key = null
    where triggerer_id = %(service_id)s and epoch = any(%(epochs)s::bigint[]) and purpose is null
    returning epoch
)
select pg_notify('triggers', '') where exists (select from released)
