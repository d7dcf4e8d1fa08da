-- Native workers that were to end have ended. What was done with them by hand ends with them.
with gone as (
    delete from fleet_worker where fleet = %(fleet)s and leaving and name = any(%(names)s::text[]) returning name
)
delete from service_state c using gone where c.kind = 'worker' and c.name = gone.name
