-- How many slots of each of these pools are free.
select name, capacity - used as free from concurrency_limit where run_key = 0 and kind = 'pool' and name = any(%(names)s::text[])
