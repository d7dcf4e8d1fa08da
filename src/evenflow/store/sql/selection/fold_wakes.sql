-- What schedulers that had not the executor's lock released, summed by limit. Only the holder of the lock does this.
with taken as (delete from wake returning limit_id, released)
select limit_id, sum(released)::int as released from taken group by limit_id
