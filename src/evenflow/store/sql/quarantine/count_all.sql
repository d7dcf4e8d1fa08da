-- How much of each kind is set aside.
select kind, count(*)::int as n from quarantine group by kind
