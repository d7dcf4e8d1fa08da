-- Native workers that were to end have ended.
delete from fleet_worker where fleet = %(fleet)s and leaving and name = any(%(names)s::text[])
