-- What a DAG or a backfill would have made is tried again; a schedule with the next look.
with gone as (
    delete from quarantine where kind = %(kind)s and object = %(object)s returning kind, object
)
update dag d set next_run_at = now() from gone where gone.kind = 'schedule' and d.dag_id = gone.object
