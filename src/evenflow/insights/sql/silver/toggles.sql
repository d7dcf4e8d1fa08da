-- When a limit became full (1) and when it had room again (-1). A DAG that is paused counts as a limit that is full.
with usage_full as (
    select scope, kind, name, hour, tx_us, position, case when used >= capacity then 1 else 0 end as is_full from usage
), of_hour as (
    select scope, kind, name, hour, max_by(is_full, position) as is_full from usage_full group by scope, kind, name, hour
), hour_before as (
    select scope, kind, name, hour, coalesce(lag(is_full) over (partition by scope, kind, name order by hour), 0) as was_full from of_hour
), change as (
    select u.scope, u.kind, u.name, u.hour, u.tx_us as us,
           u.is_full - coalesce(lag(u.is_full) over (partition by u.scope, u.kind, u.name, u.hour order by u.position), h.was_full) as slope
    from usage_full u
    join hour_before h on h.scope = u.scope and h.kind = u.kind and h.name = u.name and h.hour = u.hour
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
