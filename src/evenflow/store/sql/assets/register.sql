-- Assets as a DAG file declares them, in the order of names, so that two files cannot wait for each other; only what differs is
-- written. Which partitions an asset has is said by those that make it; another file that names it need not.
with given as (
    select c.name, c.uri, c.group_name, c.extra::jsonb as extra,
           case when c.is_made or c.partitions is not null then c.partitions::jsonb else a.partitions end as partitions
    from unnest(%(names)s::text[], %(uris)s::text[], %(groups)s::text[], %(extras)s::text[], %(partitions)s::text[],
        %(made)s::boolean[])
         as c (name, uri, group_name, extra, partitions, is_made)
    left join asset a on a.name = c.name
)
insert into asset (name, uri, group_name, extra, partitions)
select name, uri, group_name, extra, partitions from given
order by name
on conflict (name) do update
set uri = excluded.uri, group_name = excluded.group_name, extra = excluded.extra, partitions = excluded.partitions
where (asset.uri, asset.group_name, asset.extra, asset.partitions)
      is distinct from (excluded.uri, excluded.group_name, excluded.extra, excluded.partitions)
