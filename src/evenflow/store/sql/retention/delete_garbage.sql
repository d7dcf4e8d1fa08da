-- A part of what a large deleted run has left: this many task instances with their history, this many values, and when none are
-- left all the rest. SKIP LOCKED: another scheduler is at it. Answers how many instances and values they were.
with garbage as materialized (
    select run_key from run_garbage order by run_key limit 1 for update skip locked
), part as materialized (
    select t.task_index, t.map_index
    from task_instance t
    where t.run_key = (select run_key from garbage)
    order by t.task_index, t.map_index
    limit %(limit)s
), bound as materialized (
    select task_index, map_index from part order by task_index desc, map_index desc limit 1
), reached as materialized (
    select coalesce((select task_index from bound), 2147483647) as task_index,
        coalesce((select map_index from bound), 2147483647) as map_index
), instances as (
    delete from task_instance x
    using garbage g, reached r
    where x.run_key = g.run_key and (x.task_index, x.map_index) <= (r.task_index, r.map_index)
), results as (
    delete from xcom
    where ctid = any(array(select x.ctid from xcom x where x.run_key = (select run_key from garbage) limit %(limit)s))
    returning 1
), templates as (
    delete from rendered x
    using garbage g, reached r
    where x.run_key = g.run_key and (x.task_index, x.map_index) <= (r.task_index, r.map_index)
), once as (
    delete from once_value x
    using garbage g, reached r
    where x.run_key = g.run_key and (x.task_index, x.map_index) <= (r.task_index, r.map_index)
), records as (
    delete from try_record x
    using garbage g, reached r
    where x.run_key = g.run_key and (x.task_index, x.map_index) <= (r.task_index, r.map_index)
), history as (
    delete from task_event x
    using garbage g, reached r
    where x.run_key = g.run_key and (x.task_index, x.map_index) <= (r.task_index, r.map_index)
), done as (
    delete from run_garbage x using garbage g where x.run_key = g.run_key and not exists (select from part)
        and not exists (select from results)
)
select (select count(*) from part)::int, (select count(*) from results)::int
