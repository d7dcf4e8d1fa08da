-- In how many limit classes lanes are open or woken, counted no further than asked for.
select count(*)::int as classes from (select from occupied_class limit %(most)s) as o
