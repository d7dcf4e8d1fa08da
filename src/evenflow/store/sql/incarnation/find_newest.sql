-- Which incarnation the database is of; 0: the first.
select coalesce(max(incarnation), 0) from incarnation
