-- For which assets each DAG that is not paused, or set aside, has events in its queue, with its condition. The distinct names are
-- found by skipping through the index, so a queue of a million events of one asset costs as much as one of a single event.
with recursive pending as (
    (select dag_id, name, is_alias from asset_queue order by dag_id, name, is_alias limit 1)
    union all
    select n.dag_id, n.name, n.is_alias
    from pending p
    cross join lateral (
        select dag_id, name, is_alias
        from asset_queue q
        where (q.dag_id, q.name, q.is_alias) > (p.dag_id, p.name, p.is_alias)
        order by dag_id, name, is_alias
        limit 1
    ) as n
)
select p.dag_id, p.name, p.is_alias, v.outline #> '{schedule,assets}' as condition
from pending p
join dag d on d.dag_id = p.dag_id and d.is_active
join dag_version v using (version_key)
where not exists (select from quarantine q where q.kind = 'assets' and q.object = p.dag_id) and {{takes_runs}}
order by p.dag_id
