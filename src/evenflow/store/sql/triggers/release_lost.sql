-- Triggers that a triggerer has claimed and does not know of, each in the claim that was compared, so that any may claim them;
-- wakes triggerers. Their answer was lost.
with released as (
    update deferral set triggerer_id = null, claim_key = null
    from unnest(%(epochs)s::bigint[], %(claims)s::int[]) as l (epoch, claim_number)
    where triggerer_id = %(service_id)s and deferral.epoch = l.epoch and deferral.claim_number = l.claim_number and purpose is null
    returning l.epoch
)
select pg_notify('triggers', '') where exists (select from released)
