-- One says at a time which queue is whose, of executors and fleets, so that what it has checked stays so until the end of its
-- transaction. Readers do not wait for this lock. The number is five above that of migrations. It is taken before any other lock.
select pg_advisory_xact_lock(7311146993655186)
