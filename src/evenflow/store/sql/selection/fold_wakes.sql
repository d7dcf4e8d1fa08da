-- What schedulers that had not the executor's lock released, summed by limit, and when the last of it was. Only the holder of the lock does
-- this.
with taken as (delete from wake returning limit_id, released, at)
select limit_id, sum(released)::int as released, extract(epoch from max(at))::float8 as at_s from taken group by limit_id
