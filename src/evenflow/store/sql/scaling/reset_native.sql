-- A host of native workers begins anew: it runs none, so there is none, and what was planned for those before is over.
with closed as (
    update scaling_step set open = false where fleet = %(fleet)s and open
), unfenced as (
    update service s
    set fence = null, fence_until = null
    where s.kind = 'worker' and s.fence in (select plan from scaling_step p where p.fleet = %(fleet)s and p.open)
), gone as (
    delete from fleet_worker where fleet = %(fleet)s
)
update fleet set replicas = 0 where name = %(fleet)s
