-- For how many seconds the acting autoscaler still has its lease. No row: no autoscaler has had one.
select extract(epoch from until - now())::float8 as left_s from scaling_lease
