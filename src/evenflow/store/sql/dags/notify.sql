-- Schedulers look at DAGs and their limits anew.
select pg_notify('dag', ''), pg_notify('inbox', '')
