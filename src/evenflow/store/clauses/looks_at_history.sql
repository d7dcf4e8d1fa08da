-- How far the reader of history %(reader)s has looked: "look", which has no row if that was in another history of this database.
-- From now on it counts as having looked up to here.
look as materialized (
    select snapshot, pg_snapshot_xmin(snapshot)::text::bigint as oldest
    from history_look
    where reader = %(reader)s and pg_snapshot_xmax(snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
), looked as (
    update history_look set snapshot = pg_current_snapshot() where reader = %(reader)s
)
