-- The native workers of a fleet, those that are to end included.
select name, leaving from fleet_worker where fleet = %(fleet)s order by name
