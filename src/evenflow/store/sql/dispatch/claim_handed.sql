-- Gives an active worker the unclaimed tries among those that it was handed (dispatch/claim gives waiting ones), and up to
-- "resumes" resumes of these queues, whether their executor was sent them or not, with the same guards: a claim key seen before
-- takes nothing more, and its first answer, if that was lost, comes with a beat. An unclaimed try that the worker may not have now
-- is sent again: the worker is not in full service, or the try is frozen. SKIP LOCKED: the transaction that has one locked may
-- claim it, end it, or leave it as it is, so those are answered, too (busy), and asked for again. A resume that was sent may go to
-- another worker than its message, which then finds it claimed.
with closed as materialized (
    select kind, name, state from service_state where kind = 'worker' or state = 'frozen'
), own as materialized (
    select state from closed where kind = 'worker' and name = (select name from service where service_id = %(service_id)s)
    union all
    select 'frozen' from service where service_id = %(service_id)s and fence_until > now()
), named as materialized (
    select epoch,
           case class when 0 then not exists (select from own where state = 'frozen') else not exists (select from own) end
           and not {{is_frozen}} as may
    from dispatch d
    where epoch = any(%(epochs)s::bigint[]) and queue = any(%(queues)s::text[]) and worker_id is null
      and not exists (select from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s)
    for no key update skip locked
), place as materialized (
    select queue from unnest(%(queues)s::text[]) as q (queue)
    where not exists (select from own where state = 'frozen')
      and not exists (select from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s)
), resume as materialized (  -- in two looks: each of these kinds has an index of its own
    select d.*
    from place q
    cross join lateral (
        select epoch, class, priority, xact
        from dispatch d
        where d.queue = q.queue and d.class = 0 and worker_id is null and sent_at is null
          and {{is_not_avoided}}
          and not {{is_frozen}}
        order by {{tries_in_order}}
        limit %(resumes)s
        for no key update skip locked
    ) as d
    union all
    select d.*
    from place q
    cross join lateral (
        select epoch, class, priority, xact
        from dispatch d
        where d.queue = q.queue and d.class = 0 and worker_id is null and sent_at is not null
          and {{is_not_avoided}}
          and not {{is_frozen}}
        order by {{tries_in_order}}
        limit %(resumes)s
        for no key update skip locked
    ) as d
), wanted as materialized (
    select epoch, may from named
    union all
    (select epoch, true from resume as d order by {{tries_in_order}} limit %(resumes)s)
), worker as (
    update service s set claim_key = %(claim_key)s
    where service_id = %(service_id)s and {{may_claim}}
      and claim_key is distinct from %(claim_key)s and exists (select from wanted where may)
    returning service_id
), taken as (
    update dispatch d
    set worker_id = worker.service_id, claim_key = %(claim_key)s, claimed_at = now()
    from worker
    where d.epoch = any(array(select epoch from wanted where may))
    returning d.*
), called_back as (
    update dispatch d set sent_at = null
    where d.epoch = any(array(select epoch from named where not may or not exists (select from worker)))
), mine as (
    select * from taken
    union all
    select * from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s
)
select s.state, exists (select from own) as limited,
    array(select epoch from dispatch where worker_id = %(service_id)s and kill) as kill,
       array(select epoch from dispatch
             where epoch = any(%(epochs)s::bigint[]) and queue = any(%(queues)s::text[]) and worker_id is null
               and epoch <> all(array(select epoch from named))) as busy,
       extract(epoch from d.claimed_at - d.created_at)::float8 as waited_s,
       {{claimed_try}}
{{tries_of_claim}}
order by {{tries_in_order}}
