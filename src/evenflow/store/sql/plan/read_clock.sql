-- What time it is, seconds since 1970.
select extract(epoch from now())::float8 as now_s
