-- The server that has this database now, the one that had it at the last look (null: the first look), and the incarnation. A server
-- in recovery has no timeline to write on: only a session that asked for one is connected to it.
select now.system_id, now.timeline, seen.system_id as seen_system_id, seen.timeline as seen_timeline,
       coalesce((select max(incarnation) from incarnation), 0) as incarnation
from (
    select (pg_control_system()).system_identifier::text as system_id,
           case when not pg_is_in_recovery()
                then ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int end as timeline
) as now
left join database_server as seen on true
