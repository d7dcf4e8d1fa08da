-- Assets that a DAG does not wait for any longer go, and their events in its queue.
with gone as (
    delete from asset_consumer c
    where c.dag_id = %(dag_id)s
      and not exists (
          select from unnest(%(names)s::text[], %(aliases)s::boolean[]) as k (name, is_alias)
          where k.name = c.name and k.is_alias = c.is_alias)
    returning name, is_alias
)
delete from asset_queue q using gone g where q.dag_id = %(dag_id)s and q.name = g.name and q.is_alias = g.is_alias
