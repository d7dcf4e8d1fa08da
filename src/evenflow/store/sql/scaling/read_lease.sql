-- For how many seconds the autoscaler that acts still has its lease. No row: nobody has had one.
select extract(epoch from until - now())::float8 as left_s from scaling_lease
