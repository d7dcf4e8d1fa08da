-- Native workers that a fleet has from now on, with the lowest numbers that are free. A new worker is in service, whatever was done
-- by hand with an earlier one of its name; a state stays while a worker of that name lives.
with made as (
    insert into fleet_worker (fleet, name)
    select %(fleet)s::text, n.name
    from (
        select format('%%s-%%s', %(fleet)s::text, i) as name, i
        from generate_series(1, %(replicas)s::int + (select count(*)::int from fleet_worker where fleet = %(fleet)s)) as i
    ) as n
    where not exists (select from fleet_worker w where w.fleet = %(fleet)s and w.name = n.name)
    order by n.i
    limit greatest(%(replicas)s::int - (select count(*)::int from fleet_worker where fleet = %(fleet)s and not leaving), 0)
    returning name
)
delete from service_state c
using made
where c.kind = 'worker' and c.name = made.name
  and not exists (select from service s where s.kind = 'worker' and s.name = c.name and s.state in ('active', 'draining'))
