-- Up to a limit.
select count(*)::int from (select from trace_due limit %(most)s) as d
