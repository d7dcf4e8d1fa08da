-- An executor goes, and its queues become those of `worker`, whose version tells schedulers. Its limit stays, because limit classes
-- refer to it and tries may hold it; a new executor with this name gets it again, without sharing.
with gone as (
    delete from executor where name = %(name)s returning name, version
), plain as (
    update sharing s set aging_s = null, share_by = null, weights = '{}', version = s.version + 1
    from concurrency_limit l, gone
    where l.limit_id = s.limit_id and l.run_key = 0 and l.kind = 'executor' and l.name = gone.name
)
update executor set version = executor.version + gone.version + 1 from gone where executor.name = 'worker'
