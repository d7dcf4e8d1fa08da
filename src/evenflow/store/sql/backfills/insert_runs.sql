-- The dates of a backfill in the order in which their runs are to be made.
insert into backfill_run (backfill_id, position, logical_date, data_interval_start, data_interval_end, run_after, passed_over,
                          partition)
select %(backfill_id)s, position, logical_date, interval_start, interval_end, run_after, passed_over, partition
from unnest(%(logical_dates)s::timestamptz[], %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(run_afters)s::timestamptz[],
            %(passed_over)s::text[], %(partitions)s::text[])
     with ordinality as c (logical_date, interval_start, interval_end, run_after, passed_over, partition, position)
