-- Authoring: what a DAG author expects.

-- SRC: where a version comes from, and what a file warned of.
alter table dag_version
    add column bundle text,
    add column revision text;
alter table dag_file add column warnings text;

-- OPS: clearing and marking, history as people read it
alter type report_kind add value 'operate';
alter table dag_run add column clears int not null default 0;
alter table task_instance add column tries_before smallint not null default 0;
alter table mapped_task add column tries_before smallint not null default 0;
alter table lane add column tries_before smallint not null default 0;
alter table dispatch add column intent jsonb;
create index task_event_of_run on task_event using brin (run_key) with (pages_per_range = 8);
create index run_event_of_run on run_event using brin (run_key) with (pages_per_range = 8);

-- RUNS: logical dates, notes, depends_on_past, timeouts, backfills
update dag_run r set logical_date = null
where exists (select from dag_run o where o.dag_id = r.dag_id and o.logical_date = r.logical_date and o.run_key < r.run_key);
create unique index dag_run_logical on dag_run (dag_id, logical_date);
alter table dag_run add column note text;
alter table dag_run add column backfill_id bigint;
create index dag_run_of_backfill on dag_run (backfill_id) where backfill_id is not null and state in ('queued', 'running');
alter table dag add column paused_reason text;
alter type report_kind add value 'follow';
alter type report_kind add value 'past';
create table past_gate (
    run_key     bigint not null,
    task_index  int not null,
    missing     int not null,
    primary key (run_key, task_index)
);
create table past_hold (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    primary key (run_key, task_index, map_index)
);
create table past_watch (
    run_key      bigint not null,
    task_index   int not null,
    waiter_run   bigint not null,
    waiter_task  int not null,
    primary key (run_key, task_index, waiter_run, waiter_task)
);
create index past_watch_of_waiter on past_watch (waiter_run, waiter_task);
create table backfill (
    backfill_id      bigint generated always as identity primary key,
    dag_id           text not null,
    from_date        timestamptz not null,
    to_date          timestamptz not null,
    is_reversed      boolean not null,
    reprocess        text not null,
    max_active_runs  int not null,
    params           jsonb not null,
    priority         int not null,
    is_paused        boolean not null default false,
    created_at       timestamptz not null default now(),
    created_by       text not null,
    ended_at         timestamptz,
    cancelled_by     text
);
create index backfill_open on backfill (backfill_id) where ended_at is null;
create table backfill_run (
    backfill_id          bigint not null references backfill on delete cascade,
    position             int not null,
    logical_date         timestamptz not null,
    data_interval_start  timestamptz not null,
    data_interval_end    timestamptz not null,
    run_after            timestamptz not null,
    run_key              bigint,
    passed_over          text,
    primary key (backfill_id, position)
);
create index backfill_run_open on backfill_run (backfill_id, position) where run_key is null and passed_over is null;

-- CTX: connections and variables, rendered templates, large values
create table sealed_value (
    kind         text not null,
    name         text not null,
    sealed       bytea not null,
    description  text not null default '',
    dags         text[] not null default '{}',
    changed_at   timestamptz not null default now(),
    changed_by   text not null,
    primary key (kind, name)
);
create table rendered (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    epoch       bigint not null,
    fields      jsonb not null,
    primary key (run_key, task_index, map_index)
);
alter table xcom
    add column secret boolean not null default false,
    add column object text,
    add column size int;
create table xcom_garbage (
    object  text primary key,
    at      timestamptz not null default now()
);
create function note_xcom_garbage() returns trigger language plpgsql as
$$ begin insert into xcom_garbage (object) values (old.object) on conflict do nothing; return null; end $$;
create trigger object_deleted after delete on xcom
    for each row when (old.object is not null) execute function note_xcom_garbage();
create trigger object_replaced after update on xcom
    for each row when (old.object is not null and new.object is distinct from old.object) execute function note_xcom_garbage();

-- FLOW: what branches decided
create table branch_decision (
    run_key     bigint not null,
    task_index  int not null,                                -- of the branch
    map_index   int not null default -1,
    skipped     int[] not null,                              -- task indexes
    primary key (run_key, task_index, map_index)
);

-- WAIT: sensors, assets
alter table task_instance add column poking_since timestamptz;
create table asset (
    name        text primary key,
    uri         text not null,
    group_name  text not null default 'asset',
    extra       jsonb not null default '{}',
    created_at  timestamptz not null default now()
);
create table asset_consumer (
    dag_id    text not null,
    name      text not null,
    is_alias  boolean not null,
    primary key (name, is_alias, dag_id)
);
create index asset_consumer_of_dag on asset_consumer (dag_id);
create table asset_event (
    event_id   bigint generated always as identity primary key,
    asset      text not null,
    alias      text,
    at         timestamptz not null default now(),
    extra      jsonb not null default '{}',
    dag_id     text,
    run_id     text,
    task_id    text,
    map_index  int,
    actor      text not null
);
create index asset_event_of_asset on asset_event (asset, event_id desc);
create index asset_event_of_alias on asset_event (alias, event_id desc) where alias is not null;
create table asset_queue (
    dag_id    text not null,
    name      text not null,
    is_alias  boolean not null,
    event_id  bigint not null,
    primary key (dag_id, name, is_alias, event_id)
);
create table run_asset_event (
    run_key   bigint not null,
    event_id  bigint not null,
    primary key (run_key, event_id)
);

-- CALL: callbacks and deadlines
alter table dag_version add column deadlines jsonb generated always as (spec -> 'deadlines') stored;
create table callback (
    run_key     bigint primary key references dag_run on delete cascade,
    of_run      bigint not null,
    version_key bigint not null references dag_version,
    task_index  int,
    map_index   int not null,
    try_number  smallint not null,
    event       text not null,
    position    int not null,
    state       text not null,
    reason      text
);
create index callback_of_run on callback (of_run);
create function time_of_day_after(moment timestamptz, at time, zone text) returns timestamptz language sql stable as
$$
    select min(x.due) from (
        select ((moment at time zone zone)::date + days + at) at time zone zone as due from generate_series(0, 2) as days
    ) as x
    where x.due > moment
$$;
create function due_of_deadline(deadline jsonb, queued timestamptz, logical timestamptz, run_after timestamptz) returns timestamptz
language sql stable as
$$
    select make_interval(secs => coalesce((deadline ->> 'interval')::float8, 0)) + case deadline ->> 'reference'
        when 'queued_at' then queued
        when 'logical_date' then logical
        when 'fixed_datetime' then (deadline ->> 'at')::timestamptz
        when 'time_of_day' then time_of_day_after(run_after, (deadline ->> 'at')::time, coalesce(deadline ->> 'timezone', 'UTC'))
    end
$$;
create function set_deadlines() returns trigger language plpgsql as
$$
begin
    insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
    select x.due_at, 'deadline', r.run_key, d.position - 1, -1, 0
    from made r
    join dag_version v on v.version_key = r.version_key and v.deadlines is not null
    cross join lateral jsonb_array_elements(v.deadlines) with ordinality as d (deadline, position)
    cross join lateral due_of_deadline(d.deadline, r.created_at, r.logical_date, r.run_after) as x (due_at)
    where x.due_at is not null;
    return null;
end
$$;
create trigger deadlines_of_new_runs after insert on dag_run
    referencing new table as made for each statement execute function set_deadlines();
insert into pool (name, description) values ('callback_pool', 'Callbacks of tasks, runs and deadlines');
insert into concurrency_limit (kind, name, capacity) values ('pool', 'callback_pool', 16);  -- they mostly wait for mail and chat servers
insert into code (code_hash, archive) values ('', '');
with made as (
    insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file) values
        ('evenflow_callbacks', 1, '{"dag_id": "evenflow_callbacks", "description": "Runs the callbacks of other DAGs, one run for each call.",
          "format": 1, "max_active_runs": null, "max_active_tasks": null, "tasks": [{"task_id": "callback", "operator": "callback",
          "pool": "callback_pool", "retries": 2, "retry_delay": 30.0, "execution_timeout": 600.0}]}', '', '', '')
    returning version_key, dag_id
), of_task as (
    insert into task (version_key, task_index, task_id, operator) select version_key, 0, 'callback', 'callback' from made
)
insert into dag (dag_id, version_key, bundle, file) select dag_id, version_key, 'evenflow', '' from made;

-- CTX: who changed what; the keys that are in use
create table audit_event (
    event_id  bigint generated always as identity primary key,
    at        timestamptz not null default now(),
    actor     text not null,
    action    text not null,
    object    text collate "C" not null,
    detail    jsonb
);
create index audit_event_of_object on audit_event (object, event_id);

-- OPS: logs of runs and DAGs that were deleted, for the API to delete, which has the files. An empty run_id: all of the DAG.
create table log_garbage (
    dag_id  text not null,
    run_id  text not null,
    at      timestamptz not null default now(),
    primary key (dag_id, run_id)
);
