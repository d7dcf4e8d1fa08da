-- When a limit became full (1) and when it had room again (-1). A DAG that is paused counts as a limit that is full. Within an hour each row knows
-- what was before it; so only first and last rows of hours are brought together.
with edge as (
    select scope, kind, name, hour, tx_us, position, is_full,
           lag(is_full) over (partition by scope, kind, name order by hour, position) as was_full
    from usage
    where position = 1 or next_us is null
), change as (
    select scope, kind, name, hour, tx_us as us, is_full - was_full as slope from usage where position > 1
    union all
    select scope, kind, name, hour, tx_us, is_full - coalesce(was_full, 0) from edge where position = 1
), pause as (
    select p.dag_id, unix_micros(p.at) as us, max(case when p.is_paused then 1 else 0 end) as is_full from pauses p group by p.dag_id, unix_micros(p.at)
), pause_change as (
    select cast(0 as bigint) as scope, 'paused' as kind, dag_id as name, cast(floor(us / 3600000000) as bigint) as hour, us,
           is_full - coalesce(lag(is_full) over (partition by dag_id order by us), 0) as slope
    from pause
)
select scope, kind, name, hour, us, slope from change where slope <> 0
union all
select scope, kind, name, hour, us, slope from pause_change where slope <> 0
