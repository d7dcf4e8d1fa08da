-- These native workers are to end.
update fleet_worker set leaving = true where fleet = %(fleet)s and name = any(%(names)s::text[])
