-- Assets as a DAG file declares them, in the order of names, so that two files cannot wait for each other; only what differs is written.
insert into asset (name, uri, group_name, extra)
select name, uri, group_name, extra::jsonb
from unnest(%(names)s::text[], %(uris)s::text[], %(groups)s::text[], %(extras)s::text[]) as c (name, uri, group_name, extra)
order by name
on conflict (name) do update set uri = excluded.uri, group_name = excluded.group_name, extra = excluded.extra
where (asset.uri, asset.group_name, asset.extra) is distinct from (excluded.uri, excluded.group_name, excluded.extra)
