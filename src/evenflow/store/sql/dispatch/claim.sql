-- Gives an active worker tries and answers all of this claim: resumes first, then by priority. Each queue's index yields its own
-- best of each class; SKIP LOCKED: another claim has those. Resumes may take all that is asked for, first starts only what resumes
-- leave of the ordinary slots. A worker that could not start a try is served last with it. A claim key seen before takes nothing
-- more: its answer was lost. Taking leaves the key in the worker's row, so of two claims with one key at the same time the second
-- waits there, sees it and takes nothing ("beaten"; what the first took is not in its snapshot), and the worker cannot be declared
-- lost between the look and the claim. A fence that is put up meanwhile is seen there, too: its autoscaler can then see all that
-- the worker will ever have. What is frozen is passed over. A worker that is not in full service (own) gets resumes only, or
-- nothing when it is frozen or fenced; "limited" says so. In each place, a class of a queue, tries of transactions before "since"
-- are not looked for: they were given out or have ended, and yet each look would pass over them while anybody's snapshot is older;
-- the index has the number behind the priority, so they are skipped without a look at the table. Now and then ("looks") the answer
-- says from which transactions on the next looks are to be, for which it looks at the first of each priority that waits; a place
-- with very many of those keeps what it had. What never changes of a run is answered of those behind the newest that the asker
-- knows. Of a worker that is to wait at this API server ("api") a claim that finds nothing is left in its row, for turns of
-- schedulers to answer (tasks/insert_dispatches): that waits for no disk.
with recursive place as materialized (
    select q.queue, c.class, c.class || q.queue as name, coalesce((%(since)s::jsonb ->> (c.class || q.queue))::xid8, '0') as since
    from unnest(%(queues)s::text[]) as q (queue)
    cross join (values (0), (1)) as c (class)
), first_one as (
    select p.name, p.queue, p.class, p.since, d.priority, d.xact, 1 as n
    from place p
    left join lateral (
        select priority, xact from dispatch d
        where d.queue = p.queue and d.class = p.class and worker_id is null and sent_at is null and d.xact >= p.since
        order by {{tries_in_order}}
        limit 1
    ) as d on true
    where %(looks)s
    union all
    select f.name, f.queue, f.class, f.since, d.priority, d.xact, f.n + 1
    from first_one f
    cross join lateral (
        select priority, xact from dispatch d
        where d.queue = f.queue and d.class = f.class and worker_id is null and sent_at is null and d.xact >= f.since
            and d.priority < f.priority
        order by {{tries_in_order}}
        limit 1
    ) as d
    where f.n < 100
), closed as materialized (
    select kind, name, state from service_state where kind = 'worker' or state = 'frozen'
), own as materialized (
    select state from closed where kind = 'worker' and name = (select name from service where service_id = %(service_id)s)
    union all
    select 'frozen' from service where service_id = %(service_id)s and fence_until > now()
), best as materialized (
    select d.epoch, d.class, row_number() over (order by {{tries_in_order}}) as rank
    from place q
    cross join lateral (
        select %(resumes)s::int where q.class = 0 and not exists (select from own where state = 'frozen')
        union all
        select %(slots)s::int where q.class = 1 and not exists (select from own)
    ) as c (most)
    cross join lateral (
        select epoch, class, priority, xact
        from dispatch d
        where d.queue = q.queue and d.class = q.class and worker_id is null and sent_at is null and d.xact >= q.since
          and {{is_not_avoided}}
          and not {{is_frozen}}
        order by {{tries_in_order}}
        limit c.most
        for no key update skip locked
    ) as d
    where not exists (select from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s)
), chosen as materialized (
    select epoch from best where rank <= case class when 0 then %(resumes)s::int else %(slots)s::int end
), worker as (
    update service s
    set claim_key = %(claim_key)s,
        waiting_claim = case when waiting_claim ->> 'key' is distinct from %(claim_key)s then waiting_claim end,
        waits_since = case when waiting_claim ->> 'key' is distinct from %(claim_key)s then waits_since end
    where service_id = %(service_id)s and {{may_claim}}
      and claim_key is distinct from %(claim_key)s and exists (select from chosen)
    returning service_id
), left_waiting as (
    update service
    set waiting_claim = jsonb_build_object('key', %(claim_key)s::text, 'queues', %(queues)s::text[], 'slots', %(slots)s::int,
                                           'resumes', %(resumes)s::int, 'api', %(api)s::bigint),
        waits_since = clock_timestamp()
    where %(api)s::bigint is not null and service_id = %(service_id)s and kind = 'worker' and state = 'active'
      and claim_key is distinct from %(claim_key)s and not exists (select from chosen)
      and (waiting_claim ->> 'key' is distinct from %(claim_key)s or waiting_claim ->> 'api' is distinct from %(api)s::bigint::text)
    returning set_config('synchronous_commit', 'off', true)
), taken as (
    update dispatch d
    set worker_id = worker.service_id, claim_key = %(claim_key)s, claimed_at = now()
    from worker
    where d.epoch = any(array(select epoch from chosen))
    returning d.*
), mine as (
    select * from taken
    union all
    select * from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s
)
select s.state, exists (select from chosen) and not exists (select from worker) as beaten,
       exists (select from own) as limited,
       (select jsonb_object_agg(name, since::text)
        from (select name, case when max(n) = 100 then max(since) else look_from(min(xact)) end as since from first_one
            group by name) as n)::text as since,
       array(select epoch from dispatch where worker_id = %(service_id)s and kill) as kill,
       extract(epoch from d.claimed_at - d.created_at)::float8 as waited_s,
       {{claimed_try}}
{{tries_of_claim}}
order by {{tries_in_order}}
