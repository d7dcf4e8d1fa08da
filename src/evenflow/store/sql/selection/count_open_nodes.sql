-- In how many nodes lanes are open or woken, counted no further than asked for.
select count(*)::int from (select from occupied_node limit %(most)s) as o
