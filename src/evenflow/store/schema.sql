-- The whole database, as it is after all migrations (a test holds the two together). PostgreSQL 17 or newer.
--
-- Who writes what: the scheduler changes task instances, counters, lanes, limits and runs; the API inserts runs, reports, XComs and
-- services on behalf of processes that have no credentials. Locks are always taken in one order: executor (advisory), run, report and
-- timer, dispatch, deferral, counter, task instance, limit class (advisory), lane, limit. Times are this server's.
--
-- Hot tables (dispatch, report, wake, run_wake, lane, ready_task, timer) hold only work in flight. No column that changes with every
-- move stands in an index or in the predicate of one where heap-only updates matter (task_instance, upstream_counter, concurrency_limit).

create table schema_version (
    version     int primary key,
    name        text not null,
    applied_at  timestamptz not null default now(),
    works_from  int not null default 0                       -- the schema that a program must know from then on; 0: as before
);

-- Settings that decide. Infrastructure stays in files and the environment.
create table setting (
    name        text primary key,
    value       jsonb not null,
    changed_at  timestamptz not null default now(),
    changed_by  text not null,
    version     bigint not null default 0                    -- of setting_change
);

-- Every value that a setting ever had.
create table setting_change (
    version     bigint generated always as identity primary key,  -- in the order in which they took effect
    name        text not null,
    value       jsonb,                                       -- null: from then on the default
    changed_at  timestamptz not null default now(),
    changed_by  text not null
);
create index setting_change_of_name on setting_change (name, version);                  -- settings/list_changes

-- Which Evenflow this is: tokens name it, and those of another are refused.
create table installation (
    singleton  boolean primary key default true check (singleton),
    id         text not null default gen_random_uuid()::text
);
insert into installation default values;

-- Keys that sign tokens: the newest signs, all verify. At most two: a third makes the oldest go, and what it signed is void.
create table token_key (
    key_id      int primary key,
    value       bytea not null,                              -- sealed as connections are: the database alone can make no token
    created_at  timestamptz not null default now()
);

-- People who log in with a password.
create table user_account (
    name             text collate "C" primary key,
    role             text not null check (role in ('viewer', 'author', 'operator', 'admin')),  -- core/people/roles
    password         text not null,                          -- Argon2id of it, with its parameters and salt; empty: none
    subject          text unique,                            -- who that is to the provider of identities that vouches for them: its address, and its own number
    limited_to       jsonb,                                  -- core/people/scopes; null: the role counts everywhere, as an admin's does
    is_disabled      boolean not null default false,
    created_at       timestamptz not null default now(),
    created_by       text not null,
    logged_in_at     timestamptz,                            -- the last time
    check (limited_to is null or role <> 'admin')
);

-- Tokens that were given to people and to fleets of services, without their text. Those of services and tries are not listed.
create table token (
    token_id    bigint generated always as identity primary key,
    kind        text not null,                               -- operator, session, worker, processor, triggerer
    name        text not null,
    scope       text[] not null default '{}',                -- queues, of a processor bundles, that services may serve; none: all
    role        text check (role in ('viewer', 'author', 'operator', 'admin')),  -- core/people/roles; null: of a fleet, or a session, which has its person's or its token's
    limited_to  jsonb,                                       -- where the role of a person's counts, as in user_account
    user_name   text collate "C",                            -- of a session that was begun with a password, or a token of `evenflow login`; a restore may know no such user
    login_id    bigint not null default 0,                   -- the token that a session was begun with; 0: none, or one in no list
    address     text,                                        -- whence it was begun
    agent       text,                                        -- the browser or machine that it was begun in, as that says
    created_at  timestamptz not null default now(),
    created_by  text not null,
    expires_at  timestamptz not null,                        -- as is signed into it
    good_until  timestamptz,                                 -- unless who made it says again that it is needed; null: until it expires
    used_at     timestamptz,                                 -- to the hour; by itself, or by what came from it
    digest      bytea not null,                              -- of the name that the token has (jti): the keys alone make none that is in the list
    key_id      int not null,                                -- that it is signed with
    revoked_at  timestamptz,
    revoked_by  text
);

-- Codes with which a browser begins a session, once, instead of a token; without their text.
create table login_code (
    digest      bytea primary key,
    name        text not null,                               -- of the person
    token_id    bigint not null,                             -- that the code was asked for with, and the session ends with; 0: one in no list
    expires_at  timestamptz not null
);

-- Command lines that ask to be logged in, until a person has answered in a browser; without the text of either code.
create table device_login (
    digest       bytea primary key,                          -- of the code that the command line asks with
    user_digest  bytea not null unique,                      -- of the one that a person types: keyed, as it is short
    machine      text not null,                              -- as it calls itself
    address      text not null,                              -- whence it asks
    role         text check (role in ('viewer', 'author', 'operator', 'admin')),  -- that it asks for; null: the person's
    days         int not null,                               -- for which the token would be good
    began_at     timestamptz not null default now(),
    expires_at   timestamptz not null,
    polled_at    timestamptz,                                -- the last time
    answered_by  text collate "C",                           -- a user
    is_approved  boolean                                     -- null: nobody has answered
);
-- Of what a person may and what they have given away of it the lesser; null: what is not said.
create function lesser_role(one text, other text) returns text language sql immutable as
$$
    select (array['viewer', 'author', 'operator', 'admin'])[least(array_position(array['viewer', 'author', 'operator', 'admin'], one),
                                                                  array_position(array['viewer', 'author', 'operator', 'admin'], other))]
$$;

-- A database that was set back to an earlier state, or may have been, begins a new incarnation: services and tries of those before are
-- refused.
create table incarnation (
    incarnation  bigint primary key,                         -- milliseconds since 1970, so that no two restores of one dump have the same
    began_at     timestamptz not null default now(),
    reason       text not null,
    began_by     text not null,
    went_back    boolean not null                            -- to an earlier moment: which services of then are still there, nobody knows
);

-- The server that has this database, as it was seen last. Another one, or another timeline of it, may lack the last commits.
create table database_server (
    singleton  boolean primary key default true check (singleton),
    system_id  text not null,                                -- of the data directory: a copy has the same, a dump that is restored has not
    timeline   int not null,                                 -- one more each time that a standby takes over
    seen_at    timestamptz not null default now()            -- first
);

-- Connections and variables, sealed with keys that the database does not have.
create table sealed_value (
    kind         text not null,                              -- connection, variable; canary: by which an API notices other keys
    name         text not null,
    sealed       bytea not null,
    description  text not null default '',
    dags         text[] not null default '{}',               -- patterns of the DAGs that may use it; none: all
    changed_at   timestamptz not null default now(),
    changed_by   text not null,
    primary key (kind, name)
);

------------------------------------------------------------------------------------------------------------------ dags

-- The code of a DAG version: a gzipped tar of its file and the local modules that it imports, named by the hash of its content.
create table code (
    code_hash   text primary key,
    archive     bytea not null,
    created_at  timestamptz not null default now()
);

create table dag_version (
    version_key     bigint generated always as identity primary key,
    dag_id          text not null,
    version_number  int not null,
    spec            jsonb not null,
    spec_hash       text not null,
    code_hash       text not null references code,
    file            text not null,                       -- path of the DAG file inside the archive
    created_at      timestamptz not null default now(),
    bundle          text,                                -- the one that it was found in first
    revision        text,                                -- and the commit, where the bundle has commits
    deadlines       jsonb generated always as (spec -> 'deadlines') stored,  -- so that a new run need not read the whole spec
    outline         jsonb generated always as (jsonb_set(spec - '{groups,doc}'::text[], '{tasks}', '[]')) stored,  -- nor a look at its schedule
    unique (dag_id, version_number),
    unique nulls not distinct (dag_id, spec_hash, code_hash, bundle)  -- secrets may be for a bundle, so no two share a version
);
create index dag_version_of_code on dag_version (code_hash, version_key desc);          -- dags/find_code_use, retention/delete_versions

-- Names of the tasks of a version, for everything that people read.
create table task (
    version_key  bigint not null references dag_version on delete cascade,
    task_index   int not null,
    task_id      text not null,
    operator     text not null,
    execution_timeout_s float8,                              -- leases/expire_hung
    queued_timeout_s float8,                                 -- tasks/insert_queued_timeouts
    other_queue  text,                                       -- where it goes then, if it goes elsewhere
    primary key (version_key, task_index),
    unique (version_key, task_id)
);
create index task_queued_timeout on task (version_key) where queued_timeout_s is not null;                   -- inbox/begin_turn

create table dag (
    dag_id         text primary key,
    version_key    bigint not null references dag_version,   -- the newest
    bundle         text not null,
    file           text not null,
    tags           text[] not null default '{}',             -- of the newest version, for who sees by them
    is_paused      boolean not null default false,
    pause_applied  boolean not null default false,           -- whether its lanes are parked as paused
    is_active      boolean not null default true,            -- false: its file is gone
    line           smallint not null default 0,              -- in which its runs wait to be created: of all DAGs that begin in the same pools
    next_run_at    timestamptz,                              -- when the next scheduled run is created
    next_logical   timestamptz,                              -- the logical date that it will have
    last_logical   timestamptz,                              -- up to which logical date runs were scheduled; only goes forward, whatever
                                                             -- becomes of these runs
    last_interval_end timestamptz,                           -- the end of the data interval of that one
    first_seen_at  timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    paused_reason  text,                                     -- why, when nobody paused it
    forecast       jsonb,                                    -- core/forecast, where the schedule is code
    wants_forecast boolean not null default false            -- whether a processor has to compute more of it
);
create index dag_of_file on dag (bundle, file);                                         -- dags/lease_files, dags/retire_unlisted
create index dag_wants_forecast on dag (bundle, file) where wants_forecast;             -- dags/lease_files
create index dag_due on dag (next_run_at) where next_run_at is not null and not is_paused and is_active;  -- schedules/take_due_dags
-- What somebody sees whose role counts in a scope alone (core/people/scopes). Nothing that is named in the scope: there is no limit. The DAGs
-- are those with one of its tags, and those of one of its bundles.
create function dags_in_scope(scope jsonb) returns setof text language sql stable as
$$
    select dag_id from dag where not scope ?| '{tags,bundles}' or scope -> 'tags' ?| tags or scope -> 'bundles' ? bundle
$$;
-- Whether it has this pool or queue.
create function in_scope(scope jsonb, kind text, name text) returns boolean language sql immutable as
$$
    select scope is null or not scope ? kind or scope -> kind ? name
$$;
-- Whether it has what is said of a bundle beside its DAGs: its source and its files.
create function bundle_in_scope(scope jsonb, bundle text) returns boolean language sql immutable as
$$
    select scope is null or not scope ?| '{tags,bundles}' or coalesce(scope -> 'bundles' ? bundle, false)
$$;
create index dag_pause_pending on dag (dag_id) where is_paused <> pause_applied;       -- selection/take_pauses

create table dag_file (
    bundle         text not null,
    file           text not null,
    fingerprint    text not null,                            -- changes when the file or what it imports changes
    parsed         text,                                     -- the fingerprint that was parsed last
    parsed_at      timestamptz,
    parse_seconds  real,
    lease_until    timestamptz,
    lease_by       bigint,
    error          text,                                     -- the traceback when it cannot be parsed
    error_line     int,
    warnings       text,                                     -- what Python warned of while it was loaded, one a line
    leases         smallint not null default 0,              -- of this content, that ended without a result
    wants          text[],                                   -- ids of DAGs that it defines, and that are another file's
    asked          text[],                                   -- connections and variables that it asked for while it was loaded, as kind:name
    primary key (bundle, file)
);
create index dag_file_unread on dag_file (bundle, file) where parsed is distinct from fingerprint;            -- dags/lease_files
create index dag_file_broken on dag_file (bundle, file) where error is not null;         -- views/list_parse_errors, views/find_refused, metrics/read_backlog
create index dag_file_wants on dag_file (bundle, file) where wants is not null;          -- dags/list_wanted
create index dag_file_asked on dag_file (bundle, file) where asked is not null;          -- sealed/reparse_asking

------------------------------------------------------------------------------------------------------------------ runs

create type run_state as enum ('queued', 'running', 'success', 'failed');
create type task_state as enum ('none', 'scheduled', 'queued', 'running', 'deferred', 'up_for_retry', 'up_for_reschedule',
                                'success', 'failed', 'skipped', 'upstream_failed', 'removed');

create sequence run_seq;

-- Time-ordered: milliseconds since 1970 above, a sequence below, so that history can be partitioned by it.
create function next_run_key() returns bigint language sql volatile as
    $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint << 20 | (nextval('run_seq') & 1048575) $$;

create table dag_run (
    run_key              bigint primary key default next_run_key(),
    dag_id               text not null,
    run_id               text not null,                      -- the name that people use
    version_key          bigint not null references dag_version,
    state                run_state not null default 'queued',
    run_type             text not null,                      -- manual, scheduled
    params               jsonb not null default '{}',
    logical_date         timestamptz,
    data_interval_start  timestamptz,
    data_interval_end    timestamptz,
    run_after            timestamptz not null default now(),
    priority             int not null default 0,             -- ahead of the task's own in the order
    created_at           timestamptz not null default now(),
    started_at           timestamptz,
    ended_at             timestamptz,
    unfinished           int not null default 0,             -- task instances that have not finished
    failed_leaves        int not null default 0,             -- leaves that ended failed or upstream_failed
    slot_limit           bigint,                             -- the max_active_runs limit that it holds one of
    cancelled_by         text,                               -- set: nothing new starts, and the run fails when the last try has ended
    interrupted          boolean not null default false,     -- some of it is as a cancel left it, when people touched it last: it fails
    reason               text,                               -- why it failed, for people alone
    clears               int not null default 0,             -- how often people cleared or marked something of it
    note                 text,                               -- what people want to remember of it
    backfill_id          bigint,                             -- the backfill that made it, or made it run again
    quarantined_at       timestamptz,                        -- set: what is said of it waits, and nothing of it starts
    branched             boolean not null default false,     -- a branch has skipped something of it
    marked_failed_by     text,                               -- who said so of a success, which it is again when somebody takes that back
    traceparent          text,                               -- the span of the program that asked for it (core/tracing); null: none, or it did not say
    unique (dag_id, run_id)
) with (fillfactor = 80);
create index dag_run_waiting on dag_run (dag_id, priority desc, run_after, run_key) where state = 'queued';   -- runs/take_queued
create index dag_run_running on dag_run (dag_id) where state = 'running';                 -- states/end_drains, states/count_runs
create index dag_run_recent on dag_run (dag_id, run_key desc);                            -- views/list_runs, views/list_runs_in_scope
create index dag_run_scheduled on dag_run (dag_id, state) where run_type = 'scheduled' and state in ('queued', 'running');  -- schedules/take_due_dags
create index dag_run_of_version on dag_run (version_key);                                  -- retention/delete_versions
create unique index dag_run_logical on dag_run (dag_id, logical_date);                    -- past/await_runs, runs/read_previous
create index dag_run_of_backfill on dag_run (backfill_id) where backfill_id is not null and state in ('queued', 'running');  -- backfills/take_open, backfills/end_finished, backfills/cancel_one

create table task_instance (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null default -1,
    state       task_state not null default 'none',
    try_number  smallint not null default 0,                 -- tries begun
    epoch       bigint not null default 0,                   -- of the current or last dispatch
    queued_at   timestamptz,
    started_at  timestamptz,
    ended_at    timestamptz,
    losses      smallint not null default 0,                 -- dispatches lost to infrastructure; they use up no try
    reason      text,                                        -- why it ended as it did, when that is not plain; for people alone
    tries_before smallint not null default 0,                -- tries begun before it was cleared last; retries count from there
    poking_since  timestamptz,                              -- when a sensor in mode reschedule looked first
    ended_by    text,                                        -- core.states.Ender; null: a try or its trigger rule, or nothing yet
    primary key (run_key, task_index, map_index)
) with (fillfactor = 70);

-- How many upstream instances have finished, and how. Tasks with exactly one unmapped upstream need none: that upstream's state says it.
create table upstream_counter (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null default -1,
    total       int not null,
    success     int not null default 0,
    failed      int not null default 0,
    skipped     int not null default 0,
    primary key (run_key, task_index, map_index)
) with (fillfactor = 70);

-- Tasks with depends_on_past: those that wait for the previous run. No row: none does.
create table past_gate (
    run_key     bigint not null,
    task_index  int not null,
    missing     int not null,                                -- tasks of the previous run that have not ended well; deleted when there are none
    primary key (run_key, task_index)
);

-- And the instances of those tasks that nothing else holds back.
create table past_hold (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    primary key (run_key, task_index, map_index)
);

-- The other end: the task instances to tell when all instances of a task of a run have ended well.
create table past_watch (
    run_key      bigint not null,
    task_index   int not null,
    waiter_run   bigint not null,
    waiter_task  int not null,
    primary key (run_key, task_index, waiter_run, waiter_task)
);
create index past_watch_of_waiter on past_watch (waiter_run, waiter_task);                                  -- why/list_past, past/forget_gates

-- A mapped task that has been expanded. Its instances are virtual, without a row, until something happens to one of them.
create table mapped_task (
    run_key     bigint not null,
    task_index  int not null,
    length      int not null,
    virtual_state task_state not null default 'scheduled',   -- of all virtual instances
    tries_before smallint not null default 0,                -- the same for virtual instances
    virtual_reason text,                                     -- why those ended as they did, when that is not plain
    virtual_ended_by text,                                   -- and what has ended them, as of task instances
    primary key (run_key, task_index)
);

-- How many elements a result has when it is mapped over; null when it has none. Authors' tuples and dicts with other keys than strings
-- travel as {"__type__": "tuple" or "dict", "value": [...]}; mapped_length in the SDK is the same rule.
create function result_length(value jsonb) returns int language sql immutable as
$$
    select case
        when jsonb_typeof(value) = 'array' then jsonb_array_length(value)
        when jsonb_typeof(value) <> 'object' then null
        when not value ? '__type__' then (select count(*)::int from jsonb_object_keys(value))
        when value ->> '__type__' in ('tuple', 'dict') then jsonb_array_length(value -> 'value')
    end
$$;

create table xcom (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null default -1,
    key         text not null,
    value       jsonb not null,
    length      int,                                         -- number of elements when the value is a list or an object
    epoch       bigint not null,
    created_at  timestamptz not null default now(),
    secret      boolean not null default false,              -- it holds a secret that its try was given: not shown to people
    object      text,                                        -- its name in object storage; value is then JSON's null
    size        int,                                         -- bytes of that object
    -- The folder there of a DataFrame, which the value describes; only one that its own try has made.
    folder      text generated always as (
        case when value ->> '__type__' = 'frame' and value -> 'value' ->> 'name' ~ ('^' || epoch::text || '-[0-9a-f]{16}\.parquet$')
             then value -> 'value' ->> 'name' end) stored,
    primary key (run_key, task_index, map_index, key)
);

create index xcom_of_folder on xcom (folder) where folder is not null;                                       -- xcom/find_used
create index xcom_of_object on xcom (object) where object is not null;                                       -- xcom/find_used

-- Objects and folders that no row refers to any more, and EPOCH-* for what a try that was lost, or has begun a folder, may have left; the API
-- deletes them. A trigger notes them, so a statement that deletes or replaces a value does nothing for it.
create table xcom_garbage (
    object  text primary key,
    at      timestamptz not null default now()               -- from when on an API server may take it: one that has is given time
);
create index xcom_garbage_oldest on xcom_garbage (at);                                                       -- xcom/take_garbage
create function note_xcom_garbage() returns trigger language plpgsql as
$$ begin insert into xcom_garbage (object) values (coalesce(old.object, old.folder)) on conflict do nothing; return null; end $$;
create trigger object_deleted after delete on xcom
    for each row when (old.object is not null or old.folder is not null) execute function note_xcom_garbage();
create trigger object_replaced after update on xcom
    for each row when (old.object is not null and new.object is distinct from old.object
                       or old.folder is not null and new.folder is distinct from old.folder) execute function note_xcom_garbage();

-- Template fields of the newest try of a task instance, as people may see them.
create table rendered (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    epoch       bigint not null,
    fields      jsonb not null,
    primary key (run_key, task_index, map_index)
);

-- What a task instance stores once, for all its tries until it is cleared: ids of what it has made outside.
create table once_value (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    name        text not null,
    key         text not null default replace(gen_random_uuid()::text, '-', ''),  -- for systems outside that are to do a thing once
    value       jsonb,                                       -- null and not sealed: only the key is known yet
    sealed      bytea,                                       -- instead of the value, when it holds a secret that its try was given
    epoch       bigint not null,                             -- of the try that asked for it last
    at          timestamptz not null default now(),
    outside     boolean not null default false,              -- it names what may run outside until it is forgotten, also when the task is cleared
    cleaned_by  bigint,                                      -- the call that ends that, because its try is over
    primary key (run_key, task_index, map_index, name)
);
create index once_value_outside on once_value (run_key) where outside and cleaned_by is null;                  -- callbacks/insert_clean_ups

-- What a try says of its work besides its result, each kind once: the application of Spark that it is, what that cost, what it reads and writes.
-- Nothing of that changes but what its stages take, while it runs; clearing a task leaves what its earlier tries have said.
create table try_record (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    epoch       bigint not null,                             -- of its dispatch
    kind        text not null,                               -- wire.questions.RecordKind, or draft: of the end of a try whose client is elsewhere
    try_number  smallint not null,
    at          timestamptz not null default clock_timestamp(),
    xact        bigint not null default pg_current_xact_id()::text::bigint,  -- that wrote it: exports go on behind one
    value       jsonb not null,
    send_at     timestamptz,                                 -- lineage: when it is to be sent, or sent again; null: it was, or is for us alone
    primary key (run_key, task_index, map_index, epoch, kind)
);
create index try_record_written on try_record (kind, xact);                                   -- the history pipeline
create index try_record_unsent on try_record (send_at) where send_at is not null;             -- records/take_unsent

-- Logs of runs and DAGs that were deleted, for the API to delete, which has the files. An empty run_id: all of the DAG.
create table log_garbage (
    dag_id  text not null,
    run_id  text not null,
    at      timestamptz not null default now(),              -- as in xcom_garbage
    primary key (dag_id, run_id)
);
create index log_garbage_oldest on log_garbage (at);                                                         -- retention/take_log_garbage

-- Runs that were deleted and of which there was too much for one transaction: task instances, results and history of them are left.
create table run_garbage (
    run_key  bigint primary key
);

-- What a branch has decided, kept so that a task which it skips is skipped again when that task alone is cleared.
create table branch_decision (
    run_key     bigint not null,
    task_index  int not null,                                -- of the branch
    map_index   int not null default -1,
    skipped     int[] not null,                              -- task indexes
    primary key (run_key, task_index, map_index)
);

-- What a running try says of its progress, for people. Lost in a crash of the server, and that is fine.
create unlogged table task_progress (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null default -1,
    epoch       bigint not null,
    at          timestamptz not null default now(),
    payload     jsonb not null,                              -- {"label": "stage 3: count", "done": 12, "total": 200, ...}
    primary key (run_key, task_index, map_index)
) with (fillfactor = 70);

---------------------------------------------------------------------------------------------------------------- assets

-- Data that tasks make and DAGs wait for, as DAG files declare it or tasks add it.
create table asset (
    name        text primary key,
    uri         text not null,
    group_name  text not null default 'asset',
    extra       jsonb not null default '{}',
    partitions  jsonb,                                       -- core.partitions: {"every": "day"}, {"param": "country", "keys": [...]}
    created_at  timestamptz not null default now()
);

-- The partition that a run stands for, as core.partitions names them; null: none.
create function partition_of(partitions jsonb, logical timestamptz, params jsonb) returns text language sql immutable as
$$
    select case
        when partitions ->> 'every' = 'hour' then to_char(logical at time zone 'UTC', 'YYYY-MM-DD"T"HH24')
        when partitions ->> 'every' = 'day' then to_char(logical at time zone 'UTC', 'YYYY-MM-DD')
        when partitions ->> 'every' = 'month' then to_char(logical at time zone 'UTC', 'YYYY-MM')
        when partitions -> 'keys' ? (params ->> (partitions ->> 'param')) then params ->> (partitions ->> 'param')
    end
$$;

-- Which partitions of an asset there are. It outlives the events, whose retention says nothing about data.
create table asset_partition (
    asset      text not null,
    partition  text not null,
    event_id   bigint not null,                              -- the newest that said so, as all below
    at         timestamptz not null default now(),
    dag_id     text,
    run_id     text,
    actor      text not null,
    primary key (asset, partition)
);

-- Which DAGs wait for an asset, or for what tasks add to an alias: as their newest versions say.
create table asset_consumer (
    dag_id    text not null,
    name      text not null,
    is_alias  boolean not null,
    primary key (name, is_alias, dag_id)
);
create index asset_consumer_of_dag on asset_consumer (dag_id);                                               -- assets/delete_consumers

-- Which DAGs make an asset: as their newest versions say.
create table asset_producer (
    dag_id    text not null,
    name      text not null,
    primary key (name, dag_id)
);
create index asset_producer_of_dag on asset_producer (dag_id);                                               -- assets/delete_producers

-- Which DAGs watch an asset from outside: as their newest versions say. Of those with one key one at a time does.
create table asset_watch (
    dag_id     text primary key,
    asset      text not null,
    watch_key  text not null
);
create index asset_watch_by_key on asset_watch (watch_key);                                                  -- schedules/take_due_dags

-- Append-only: an asset changed, through the success of a task or by hand.
create table asset_event (
    event_id   bigint generated always as identity primary key,
    asset      text not null,
    alias      text,                                         -- through which the task added it
    partition  text,                                         -- which changed; null: none that has a name
    at         timestamptz not null default now(),
    extra      jsonb not null default '{}',
    dag_id     text,                                         -- of the task, as the three below; null when it was by hand
    run_id     text,
    task_id    text,
    map_index  int,
    actor      text not null
);
create index asset_event_of_asset on asset_event (asset, event_id desc);                                     -- assets/list_events
-- The DAGs that make an asset: those that say so, and those of its newest events, since what a task adds to an alias stands in no DAG.
create function producers_of(made text) returns setof text language sql stable as
$$
    select dag_id from asset_producer where name = made
    union
    select dag_id from (select dag_id from asset_event where asset = made order by event_id desc limit 100) as newest
    where dag_id is not null
$$;
-- The assets that DAGs of a scope wait for, or make.
create function assets_in_scope(scope jsonb) returns setof text language sql stable as
$$
    select a.name
    from asset a
    where not scope ?| '{tags,bundles}'
       or exists (
           select from asset_consumer c where c.name = a.name and not c.is_alias and c.dag_id in (select dags_in_scope(scope)))
       or exists (select from producers_of(a.name) as maker where maker in (select dags_in_scope(scope)))
$$;
-- Whether who has the scope may say that an asset has changed: one of their DAGs makes it; or no DAG does, and what waits for it is theirs.
create function makes_in_scope(scope jsonb, made text) returns boolean language sql stable as
$$
    select exists (select from producers_of(made) as maker where maker in (select dags_in_scope(scope)))
        or not exists (select from producers_of(made))
           and made in (select assets_in_scope(scope))
           and not exists (
               select from asset_consumer c where c.name = made and not c.is_alias and c.dag_id not in (select dags_in_scope(scope)))
$$;
create index asset_event_of_alias on asset_event (alias, event_id desc) where alias is not null;             -- assets/list_alias_events

-- What tasks of Airflow's keep with an asset for all runs of all DAGs, such as how far it has been loaded.
create table asset_value (
    asset     text not null,
    name      text not null,
    value     jsonb not null,
    asked_on  date not null default current_date,            -- the last day on which a task read or wrote it: for years nobody may
    primary key (asset, name)
);
create index asset_value_by_day on asset_value (asked_on);                                                   -- retention/delete_asset_values

-- Events that have made no run yet, by the DAG that is to have them. Rows are only inserted by producers and only deleted, under the lock
-- of the DAG's row, together with the insert of the run: whatever commits too late for one run is there for the next.
create table asset_queue (
    dag_id    text not null,
    name      text not null,                                 -- as the DAG's condition names it
    is_alias  boolean not null,
    event_id  bigint not null,
    primary key (dag_id, name, is_alias, event_id)
);
create index asset_queue_of_event on asset_queue (event_id);                                                 -- retention/delete_asset_events

-- What made a run.
create table run_asset_event (
    run_key   bigint not null,
    event_id  bigint not null,
    primary key (run_key, event_id)
);
create index run_asset_event_of_event on run_asset_event (event_id);                                         -- retention/delete_asset_events

------------------------------------------------------------------------------------------------------------- selection

-- kind          run_key  name
-- pool          0        pool
-- executor      0        executor
-- dag_task      0        dag_id/task_id     max_active_tis_per_dag
-- dag_runs      0        dag_id             max_active_runs
-- share         0        limit_id/tenant    counts the slots of a tenant, and limits nothing
-- run           run      ''                 max_active_tasks
-- run_task      run      task_id            max_active_tis_per_dagrun
create type limit_kind as enum ('pool', 'executor', 'dag_task', 'dag_runs', 'share', 'run', 'run_task');

create table concurrency_limit (
    limit_id     bigint generated always as identity primary key,
    kind         limit_kind not null,
    run_key      bigint not null default 0,
    name         text not null,
    capacity     int not null check (capacity >= 0),
    used         int not null default 0,                     -- holds + releases not yet folded
    patience_s   real check (patience_s >= 0),               -- pool: how long a task that does not fit lets smaller ones pass; null for ever
    released_at  timestamptz not null default now(),         -- when it last had more room than before
    lowered_at   timestamptz,                                -- when its capacity last fell, or it was made below its use
    unique (run_key, kind, name)
) with (fillfactor = 70);

-- Ids of limits of runs, above all others: a statement that makes a run knows them at once. A scheduler takes a thousand at a time.
create sequence run_limit_seq start 1000000000000 increment by 1000;

-- The auditor learns of each limit that is lowered. No statement of a round sets a capacity, so this costs the hot path nothing.
create function note_lowered() returns trigger language plpgsql as
$$ begin new.lowered_at := clock_timestamp(); return new; end $$;
create trigger lowered before update of capacity on concurrency_limit
    for each row when (new.capacity < old.capacity) execute function note_lowered();
create trigger made_low before insert on concurrency_limit
    for each row when (new.used > new.capacity) execute function note_lowered();

create table pool (
    name            text primary key,
    description     text not null default '',
    while_deferred  text not null default 'hold'             -- what becomes of a slot while its task is deferred: hold, release
);

-- What runs tries: native workers, who ask for them, or something that is told of each (push): Celery, Kubernetes. Its slots are a limit. A
-- queue is of one executor, and of `worker` when none names it. Each change counts up a version, so schedulers learn of it in their next turn.
create table executor (
    name        text primary key,
    kind        text not null check (kind in ('native', 'celery', 'kubernetes')),
    queues      text[] not null default '{}',
    options     jsonb not null default '{}',                 -- core/executors.py; never a secret
    version     bigint not null default 0,
    changed_at  timestamptz not null default now(),
    changed_by  text not null
);

-- A queue that is not here is of `worker`. Of push executors launchers send what waits.
create view queue_executor as
select q.queue, e.name as executor, e.kind, e.kind <> 'native' as push from executor e cross join lateral unnest(e.queues) as q (queue);

-- Pools and executors where more than the order decides: what waits may age, and tenants may share (core/selection/shares.py). Each
-- change counts up a version, so schedulers learn of it in their next turn, for what becomes ready from then on. Never deleted.
create table sharing (
    limit_id   bigint primary key references concurrency_limit,
    aging_s    int check (aging_s > 0),                      -- for so long a task waits to count as one of a run with the next higher priority
    share_by   text check (share_by in ('dag', 'tag', 'owner')),
    weights    jsonb not null default '{}',                  -- of tenants; of others it is 1
    time       bigint not null default 0,                    -- the begin of the last start, in served time
    version    bigint not null
);

-- Tenants that have ever started something where tenants share.
create table tenant (
    limit_id   bigint primary key references concurrency_limit,  -- of kind share
    scope_id   bigint not null references sharing,
    name       text not null,                                -- '' for all that have no tag with a weight
    weight     int not null check (weight > 0),
    served     bigint not null default 0,                    -- when its last start ends, in served time
    unique (scope_id, name)
) with (fillfactor = 70);

-- What tells ready tasks apart beyond their run.
create table limit_class (
    class_id        int generated always as identity primary key,
    pool_limit      bigint not null references concurrency_limit,
    executor_limit  bigint not null references concurrency_limit,
    queue           text not null,
    weight          int not null,                            -- pool slots of one task
    task_limit      bigint references concurrency_limit,     -- max_active_tis_per_dag
    base_id         int not null references limit_class,     -- the limit class that is the same without task_limit
    aging_s         int,                                     -- as sharing had it when the limit class was made
    share_id        bigint references concurrency_limit,     -- of the tenant, where tenants shared then
    unique nulls not distinct (pool_limit, executor_limit, queue, weight, task_limit, aging_s, share_id)
);
create index limit_class_of_task_limit on limit_class (task_limit) where task_limit is not null;  -- selection/find_waiting
create index limit_class_of_base on limit_class (pool_limit) where task_limit is null;  -- selection/find_waiting
create index limit_class_of_executor on limit_class (executor_limit);                   -- the foreign key, in runs/delete_limits: of each limit of a run
create index limit_class_of_base_id on limit_class (base_id);                           -- the foreign key, in retention/delete_limits

create sequence lane_seq increment by 1000;                  -- as epoch_seq

-- Ready tasks of one run that no limit tells apart: open, or parked on one full limit. Deleted when empty.
create table lane (
    lane_id         bigint primary key,
    class_id        int not null references limit_class,
    run_key         bigint not null,
    run_priority    int not null,
    priority        int not null,
    order_key       bytea not null,                          -- of two lanes the one with the smaller goes first: core/selection/order.py
    locals          bigint[] not null,                       -- limits of its run, narrowest first
    parked_on       bigint not null default 0,               -- 0 open, -1 paused, -2 open and woken, -3 in quarantine, else a limit
    ready           int not null,                            -- rows in ready_task + untouched mapped instances
    task_index      int,                                     -- the mapped task whose untouched instances it also stands for
    next_map_index  int not null default 0,
    end_map_index   int not null default 0,
    since           timestamptz not null default now(),      -- when the first of its tasks became ready
    base_id         int not null,                            -- of its limit class
    tries_before    smallint not null default 0,             -- the same for the untouched instances that it stands for
    exempt          boolean not null default false           -- resumes, clean-up and callbacks: they start where first starts may not
);
create index lane_order on lane (parked_on, base_id, order_key);                                    -- selection/read_parked, selection/read_heads_of_bases
create index lane_open on lane (parked_on, class_id, order_key) where parked_on in (0, -2); -- occupied_class, selection/read_heads
create index lane_of_run on lane (run_key, class_id, priority);                                               -- selection/find_lanes
create index lane_exempt on lane (class_id) where exempt;                                                     -- states/read_exempt

-- Limit classes with open or woken lanes, found by skipping through the index: the others cost nothing, and a limit ends the walk.
create view occupied_class as
with recursive occupied as (
    select k.parked_on, n.class_id
    from (values (0::bigint), (-2)) as k (parked_on)
    cross join lateral (select class_id from lane where parked_on = k.parked_on and parked_on in (0, -2) order by class_id limit 1) as n
    union all
    select o.parked_on, n.class_id
    from occupied o
    cross join lateral (
        select class_id from lane where parked_on = o.parked_on and parked_on in (0, -2) and class_id > o.class_id order by class_id limit 1
    ) as n
)
select parked_on, class_id from occupied;

create table ready_task (
    lane_id     bigint not null,
    task_index  int not null,
    map_index   int not null,
    primary key (lane_id, task_index, map_index)
);

-- What an apply released while another scheduler had the executor's lock; the next round folds it into the limits. limit_id 0
-- releases nothing and only says that a lane opened.
create table wake (
    wake_id   bigint generated always as identity primary key,
    limit_id  bigint not null,
    released  int not null,
    at        timestamptz not null default now()
);

-- Limits that DAGs and tasks brought with them and that no stored version knows. So no run knows them, and none will: a task that comes
-- back comes with another version, and its limit with another key. A scheduler may remember such a limit, but is never asked for it.
create view unused_limit as
select l.limit_id, l.kind, l.name, split_part(l.name, '/', 1) as dag_id
from concurrency_limit l
where l.run_key = 0 and l.kind in ('dag_task', 'dag_runs') and l.used = 0
  and not exists (select from wake w where w.limit_id = l.limit_id)
  and not exists (
      select from dag_version v
      where v.dag_id = split_part(l.name, '/', 1)
        and (l.kind = 'dag_runs' or exists (
            select from task t where t.version_key = v.version_key and t.task_id = substr(l.name, strpos(l.name, '/') + 1))));

-- DAGs to look at for queued runs that may begin. Whatever lets one begin says so here, in its own transaction: the triggers on it see to
-- it, so no statement forgets. A scheduler looks at no other DAG, and a wake goes when a look has found that nothing of its DAG may begin.
create table run_wake (
    wake_id   bigint generated always as identity,
    dag_id    text not null,
    priority  int not null,                                  -- of the best run that waits
    line      smallint not null,                             -- of the DAG: lines take turns
    due_at    timestamptz not null default now(),            -- the run_after of a run that is made ahead of it
    xact      xid8 not null default pg_current_xact_id(),    -- the transaction that put it in: turns look from one on
    primary key (dag_id, wake_id)
);
create index run_wake_order on run_wake (priority desc, line desc, xact, wake_id) include (due_at);  -- runs/take_queued
create index run_wake_oldest on run_wake (xact) include (due_at);                         -- inbox/begin_turn, runs/take_queued

-------------------------------------------------------------------------------------------------------------- dispatch

-- From which transaction on the next look at a queue is to be, when the oldest row that this one has left there is of that transaction. Rows
-- of those before are gone for good. What may still be under way is not before it, this transaction included, should it have begun to write: PostgreSQL counts it.
create function look_from(oldest xid8) returns xid8 language sql stable as
$$ select least(oldest, pg_snapshot_xmin(pg_current_snapshot())) $$;

-- A guarded write has hit as many rows as it named, or its transaction is rolled back (LostRace).
create function expect_rows(hit bigint, expected int, what text) returns void language plpgsql as
$$
begin
    if hit <> expected then
        raise exception using errcode = 'EV001', message = format('%s: %s of %s rows were as they had been read.', what, hit, expected);
    end if;
end
$$;

create sequence epoch_seq increment by 1000;                 -- a scheduler takes a thousand at a time

-- One row for each try that is queued or runs. Deleting it releases its holds, once.
create table dispatch (
    epoch       bigint primary key,
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    try_number  smallint not null,
    class       smallint not null,                           -- 0 resume, 1 start
    priority    bigint not null,                             -- as core.selection.order.try_priority makes it
    queue       text not null,
    holds       bigint[] not null,                           -- limits: the pool first (pool_slots of it), then one of each other
    pool_slots  int not null,
    created_at  timestamptz not null default now(),
    avoid       bigint,                                      -- a worker that could not start it; others come first for 5 s
    worker_id   bigint,                                      -- null: waits for a worker
    claim_key   text,
    claimed_at  timestamptz,
    kill_at     timestamptz,                                 -- since when somebody wants the process ended
    kill        boolean not null generated always as (kill_at is not null) stored,
    intent      jsonb,                                       -- somebody's, for when the process has ended: {"event": ..., "actor": ...}
    started     boolean not null default false,              -- its worker has said in a beat that its process runs; of short tries nobody asks
    xact        xid8 not null default pg_current_xact_id(),  -- the transaction that wrote it: claims look from one on
    sent_at     timestamptz,                                 -- push executors: when it was sent to one; null: it is to be sent
    sends       smallint                                     -- how often it was; null: never
);
create index dispatch_waiting on dispatch (queue, class, priority desc, xact, epoch) where worker_id is null and sent_at is null;  -- dispatch/claim, launches/take_unsent
create index dispatch_sent on dispatch (queue, class, sent_at) where worker_id is null and sent_at is not null;  -- launches/take_overdue, dispatch/claim_handed
create index dispatch_of_worker on dispatch (worker_id, claim_key) where worker_id is not null;              -- dispatch/claim, dispatch/compare_listed
create index dispatch_killed on dispatch (worker_id) where kill;                                             -- dispatch/claim, dispatch/read_kills

-- One row for a task instance that is deferred, or that has resumed and whose try has not ended. The scheduler writes it, except the
-- claim, failures and due_at, which the API writes for triggerers.
create table deferral (
    run_key       bigint not null,
    task_index    int not null,
    map_index     int not null,
    epoch         bigint not null,                           -- of the dispatch that deferred: of its task instance while that is deferred
    queue         text not null,                             -- of the triggerers that may have it
    trigger       text not null,                             -- its class, for people
    sealed        bytea not null,                            -- what the task said when it deferred; only the API can open it
    holds         bigint[] not null,                         -- what it keeps, as in dispatch (the pool first when pool_slots > 0)
    pool_slots    int not null,
    retake        bigint[] not null,                         -- what it has released and takes again when it resumes, in the same way
    retake_slots  int not null,
    deferred_at   timestamptz not null default now(),
    timeout_at    timestamptz,
    began_at      timestamptz not null,                      -- when its try started, however often that has deferred since
    ran_s         real not null,                             -- seconds that its try has run, waiting not counted
    ready_at      timestamptz not null,                      -- when its try was queued first
    triggerer_id  bigint,                                    -- null: waits for a triggerer
    claim_number  int not null default 0,                    -- rises with each claim
    claimed_at    timestamptz,
    claim_key     text,
    failures      smallint not null default 0,               -- of its trigger
    told          bigint not null default 0,                 -- of a trigger that watches an asset: which claim told last, and what number
    due_at        timestamptz not null default now(),        -- no triggerer gets it before; infinity: it waits for a person
    purpose       text,                                      -- null: it waits; what its resume is for: event, timeout, failed, clean_up
    event         bytea,                                     -- of the trigger, sealed
    event_at      timestamptz,                               -- when its resume was decided
    reason        text,                                      -- why it resumes, when that is not plain
    intent        jsonb,                                     -- somebody's, for when its clean-up has ended, as in dispatch
    primary key (run_key, task_index, map_index)
) with (fillfactor = 70);
create index deferral_unclaimed on deferral (queue, due_at) where triggerer_id is null and purpose is null;  -- triggers/claim
create index deferral_for_people on deferral (deferred_at, epoch) where due_at = 'infinity' and purpose is null;  -- approvals/list_waiting
create index deferral_for_triggers on deferral (deferred_at, epoch) where due_at < 'infinity' and purpose is null;  -- triggers/list_waiting
create index deferral_of_triggerer on deferral (triggerer_id, claim_key) where triggerer_id is not null;     -- triggers/compare_listed

-- What people answered to tasks that asked; the first answer counts. What they typed into the form is in the result of the task.
create table approval (
    run_key      bigint not null references dag_run on delete cascade,
    task_index   int not null,
    map_index    int not null,
    epoch        bigint not null,                            -- of the deferral
    choice       text not null,
    answered_by  text not null,
    answered_at  timestamptz not null default now(),
    primary key (run_key, task_index, map_index, epoch)
);

create type report_kind as enum ('started', 'exit', 'lost', 'cancel', 'operate', 'follow', 'past', 'event', 'settle');

-- The inbox. Read by run, never by id: identity order is not commit order. Of one run and one try there are few, of a run there may be many.
-- What people want (cancel, operate) costs the size of a run and is applied in small portions: it stands in an index of its own, so
-- that however much of it waits, nothing else is looked for behind it.
create table report (
    run_key    bigint not null,
    report_id  bigint generated always as identity,
    kind       report_kind not null,
    epoch      bigint not null,                              -- 0: about the run
    at         timestamptz not null default now(),
    payload    jsonb,
    held       boolean not null default false,               -- its run is in quarantine
    xact       xid8 not null default pg_current_xact_id(),   -- the transaction that put it in, or back: turns look from one on
    primary key (run_key, epoch, report_id)
);
create index report_oldest on report (xact, report_id) where not held and kind not in ('cancel', 'operate'); -- inbox/lock_runs, metrics/read_backlog
create index report_changes on report (xact, report_id) where not held and kind in ('cancel', 'operate');    -- inbox/lock_runs, metrics/read_backlog

-- The only source of "later".
create table timer (
    timer_id    bigint generated always as identity primary key,
    due_at      timestamptz not null,
    kind        text not null,                               -- retry, reschedule, run_timeout, deadline, trigger_timeout, execution_timeout, queued_timeout
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    epoch       bigint not null,                             -- void when the task has moved on
    held        boolean not null default false               -- its run is in quarantine
);
create index timer_due on timer (due_at, run_key) where not held;                                            -- inbox/lock_runs, inbox/take_timers, inbox/next_due
create index timer_of_run on timer (run_key, due_at) where not held;                                         -- inbox/take_timers
create index timer_of_instance on timer (run_key, task_index, map_index);                                    -- deferrals/delete_all, runs/finish, operations/delete_runs

-- What is set aside because handling it raised an exception, until a person releases it; what belongs to DAGs also until their next version.
create table quarantine (
    kind     text not null,                                  -- run, schedule, assets, backfill
    object   text not null,                                  -- DAG/RUN, DAG, DAG, number of the backfill
    run_key  bigint references dag_run on delete cascade,
    since    timestamptz not null default now(),
    reason   text not null,                                  -- the exception and its place; never a value
    primary key (kind, object)
);

------------------------------------------------------------------------------------------------------------ backfills

-- Runs of past dates. A scheduler makes them in order, never more at once than max_active_runs.
create table backfill (
    backfill_id      bigint generated always as identity primary key,
    dag_id           text not null,
    from_date        timestamptz,                           -- null, as the next: it is over keys
    to_date          timestamptz,
    partitions_of    text,                                  -- an asset: only what is missing of it, unless reprocess says otherwise
    is_reversed      boolean not null,
    reprocess        text not null,                         -- none, failed, completed: of dates that have a run already
    max_active_runs  int not null,
    params           jsonb not null,
    priority         int not null,
    is_paused        boolean not null default false,
    created_at       timestamptz not null default now(),
    created_by       text not null,
    ended_at         timestamptz,
    cancelled_by     text
);
create index backfill_open on backfill (backfill_id) where ended_at is null;                                -- backfills/take_open

create table backfill_run (
    backfill_id          bigint not null references backfill on delete cascade,
    position             int not null,
    logical_date         timestamptz,                         -- null, as the next three: it is a partition with a key
    data_interval_start  timestamptz,
    data_interval_end    timestamptz,
    run_after            timestamptz,
    run_key              bigint,
    passed_over          text,                                -- why it gets no run of this backfill
    partition            text,                                -- that its run makes
    primary key (backfill_id, position)
);
create index backfill_run_open on backfill_run (backfill_id, position) where run_key is null and passed_over is null;  -- backfills/make_runs, backfills/take_open

-- When a run is to have ended; task_index says which of the DAG's deadlines it is. A trigger sets it, so a statement that makes runs does nothing for it.
create function time_of_day_after(moment timestamptz, at time, zone text) returns timestamptz language sql stable as
$$
    select min(x.due) from (
        select ((moment at time zone zone)::date + days + at) at time zone zone as due from generate_series(0, 2) as days
    ) as x
    where x.due > moment
$$;
-- How long the last successful runs of a DAG took, among its newest 1,000; null if there are too few.
create function average_runtime(of_dag text, most int, fewest int) returns interval language sql stable as
$$
    select avg(x.took)
    from (select n.ended_at - n.started_at as took
          from (select * from dag_run where dag_id = of_dag order by run_key desc limit 1000) as n
          where n.state = 'success' and n.started_at is not null
          order by n.run_key desc limit most) as x
    having count(*) >= fewest
$$;
create function due_of_deadline(deadline jsonb, of_dag text, queued timestamptz, logical timestamptz, run_after timestamptz) returns timestamptz
language sql stable as
$$
    select make_interval(secs => coalesce((deadline ->> 'interval')::float8, 0)) + case deadline ->> 'reference'
        when 'queued_at' then queued
        when 'logical_date' then logical
        when 'fixed_datetime' then (deadline ->> 'at')::timestamptz
        when 'average_runtime' then queued + average_runtime(of_dag, (deadline ->> 'runs')::int, (deadline ->> 'least')::int)
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
    cross join lateral due_of_deadline(d.deadline, r.dag_id, r.created_at, r.logical_date, r.run_after) as x (due_at)
    where x.due_at is not null;
    return null;
end
$$;
create trigger deadlines_of_new_runs after insert on dag_run
    referencing new table as made for each statement execute function set_deadlines();

-- A run of the DAG of callbacks, and what it is about: one function of an author, for one event of a task or a run.
create table callback (
    run_key     bigint primary key references dag_run on delete cascade,
    of_run      bigint not null,                             -- it may be deleted before
    version_key bigint not null references dag_version,      -- whose code has the function
    task_index  int,                                         -- null: of the run as a whole
    map_index   int not null,
    try_number  smallint not null,
    event       text not null,                               -- on_failure_callback, clean_up, ...
    position    int not null,                                -- of the function, among those of the event
    state       text not null,                               -- that it is about
    reason      text,
    notifier    jsonb                                        -- of the rule that calls, as it was then; null: a function calls
);
create index callback_of_run on callback (of_run);                                                           -- callbacks/list_of_run
create index callback_of_version on callback (version_key);                                                  -- retention/delete_versions

-- What is told to whom without a function in a DAG file: each event that a rule is for becomes a callback (notifications/call).
create table notification_rule (
    name       text primary key,
    event      text not null,                                -- run_failed, run_succeeded, task_failed, task_retried, deadline_missed
    dags       text[] not null,                              -- none: all
    scope      jsonb,                                        -- tags and bundles of DAGs; null: all
    notifier   text not null,                                -- webhook, slack, teams, pagerduty, email
    conn_id    text not null,                                -- where the address is, and its secret
    signed_by  text,                                         -- a connection whose password signs webhooks
    recipients text[] not null,                              -- of mail
    is_enabled boolean not null,
    changed_at timestamptz not null default now(),
    changed_by text not null
);

-- How far history was looked at: for notification rules by a scheduler, for traces by an API server, each under the lock of its row.
create table history_look (
    reader    text primary key,                              -- notifications, traces
    snapshot  pg_snapshot not null                           -- each look moves it on, in its transaction
);

-- Ends of runs whose traces are to be sent to a collector. Where no collector is named there are none, and no server looks for them.
create table trace_due (
    run_key   bigint not null,
    ended_at  timestamptz not null,                          -- the time of its row in run_event: a run that is cleared ends again
    due_at    timestamptz not null default now(),            -- from when on an API server may take it: one that has is given time
    primary key (run_key, ended_at)
);
create index trace_due_next on trace_due (due_at);                                                           -- traces/take_due
create index trace_due_oldest on trace_due (ended_at);                                                       -- traces/drop_old

-------------------------------------------------------------------------------------------------------------- services

-- Everything that heartbeats. A worker may claim only while it is 'active' and its lease holds.
create table service (
    service_id  bigint generated always as identity primary key,
    kind        text not null,                               -- scheduler, api, processor, worker
    name        text not null,
    host        text not null,
    pid         int not null,
    version     text not null,
    state       text not null default 'active',              -- active, draining, stopped, lost
    started_at  timestamptz not null default now(),
    beat_at     timestamptz not null default now(),
    claim_key   text,                                        -- worker: of the last claim that took something, or was given something
    waiting_claim jsonb,                                     -- worker: its claim that found nothing: key, queues, slots, resumes, and the api server where it waits
    waits_since timestamptz,
    detail      jsonb not null default '{}',                 -- worker: slots, queues, running, outrun (epochs of tries that it cannot end)
    schema_known int not null default 0,                     -- the newest schema that its program knows; 0: it has no database
    settled     boolean not null default false,              -- it has gone, and nothing is left of it that others take over
    fence       bigint,                                      -- worker: the plan (scaling_step) for which it is to take nothing
    fence_until timestamptz,                                 -- but no longer than this; triggerer: it has given triggers back, and takes none until then
    fate        text                                         -- worker: what is known of its end before it is lost, for people
);
create index service_unsettled on service (kind, service_id) where state in ('lost', 'stopped') and not settled;  -- leases/report_lost_tries, leases/release_triggers, leases/settle_services
create index service_past on service (kind, beat_at) where settled;                                          -- services/register
create index service_waiting on service (waits_since) where waits_since is not null;                         -- inbox/begin_turn
create index service_alive on service (kind, beat_at) where state in ('active', 'draining');                 -- leases/expire_services, leases/lock_clock

-- Fleets of workers that an autoscaler makes larger and smaller (core/scaling). A queue is of one fleet at most.
create table fleet (
    name        text primary key,
    target      text not null,                               -- what runs its workers: native, kubernetes
    queues      text[] not null,
    policy      jsonb not null default '{}',                 -- core/scaling/policy.py; what is not as by default
    options     jsonb not null default '{}',                 -- of the target
    replicas    int not null default 0 check (replicas >= 0),  -- that there are to be
    changed_at  timestamptz not null default now(),
    changed_by  text not null
);

-- Native workers that there are to be. A host of theirs starts and ends processes by it, and deletes those that have ended.
create table fleet_worker (
    fleet    text not null references fleet on delete cascade,
    name     text not null,
    leaving  boolean not null default false,                 -- it is to end
    primary key (fleet, name)
);

-- The autoscaler that acts. What an autoscaler changes it changes while it holds this row.
create table scaling_lease (
    singleton  boolean primary key default true check (singleton),
    holder     bigint not null,                              -- a service
    until      timestamptz not null
);

-- What an autoscaler does, each step before it is done: after a crash the next autoscaler continues from here. The steps of a plan have the number of its first.
create table scaling_step (
    step_id  bigint generated always as identity primary key,
    fleet    text not null references fleet on delete cascade,
    plan     bigint not null,
    step     text not null,                                  -- grow, choose, fence, load, release, drain, mark, resize, verify, restore, undo
    detail   jsonb not null default '{}',
    at       timestamptz not null default now(),
    done_at  timestamptz,
    open     boolean not null default true                   -- its plan has not ended
);
create index scaling_step_of_plan on scaling_step (fleet, plan desc, step_id);                               -- scaling/list_steps
create index scaling_step_open on scaling_step (plan) where open;                                            -- scaling/read_open, scaling/close_plan

-- What autoscalers saw of each fleet and what they made of it: for plots, and for the autoscaler that takes over.
create table scaling_look (
    fleet        text not null references fleet on delete cascade,
    at           timestamptz not null,
    running      int not null,
    aside        int not null,                               -- tries of workers that are about to go or out of service
    waiting      int not null,
    expected     int not null,
    oldest_wait  real not null,
    duration     real,
    replicas     int not null,
    out_of_service int not null,                             -- workers of the fleet, which replicas leaves out
    others       int not null,                               -- slots of workers of no fleet
    ready        int not null,                               -- slots of its workers that take tries
    asked        int not null,                               -- replicas that the load alone asks for
    reason       text not null,
    primary key (fleet, at)
);

-- Hot tables are a few megabytes in which every row soon dies: they are cleaned by the number of dead rows, not by their share, and as
-- fast as it goes. Each server looks as often as its autovacuum_naptime says.
do $$
declare
    hot text;
begin
    foreach hot in array array['dispatch', 'deferral', 'report', 'lane', 'ready_task', 'wake', 'run_wake', 'timer', 'concurrency_limit', 'service'] loop
        execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,'
                       ' autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,'
                       ' autovacuum_vacuum_cost_delay = 0)', hot);
    end loop;
end $$;

-- DAGs, pools, queues, workers and the whole system that do not take on everything. No row: active. Of a DAG is_paused goes before:
-- it says whether first starts stand still, and the row of a DAG for which they do says more than that it is paused.
create table service_state (
    kind      text not null,                                 -- dag, pool, queue, worker, system
    name      text not null,                                 -- of the system: all
    state     text not null,                                 -- draining, resume_only, paused, frozen
    since     timestamptz not null default now(),
    actor     text not null,
    deadline  timestamptz,                                   -- draining: until when it waits for what is there
    reason    text,                                          -- why, when nobody set just this state
    primary key (kind, name)
);

-- What lets queued runs begin, as wakes of their DAGs. A DAG that is not there yet has a wake of its own when it comes.
create function line_of(dag_id text) returns smallint language sql stable as
$$ select coalesce((select line from dag d where d.dag_id = line_of.dag_id), 0::smallint) $$;
create function wake_runs(dag_ids text[]) returns void language sql as
$$
    insert into run_wake (dag_id, priority, line)
    select w.dag_id, q.priority, line_of(w.dag_id)
    from unnest(dag_ids) as w (dag_id)
    cross join lateral (
        select priority from dag_run
        where dag_run.dag_id = w.dag_id and state = 'queued'
        order by priority desc
        limit 1
    ) as q
$$;

-- Runs are made, or wait again: cleared, out of quarantine.
create function wake_new_runs() returns trigger language plpgsql as
$$
begin
    insert into run_wake (dag_id, priority, line, due_at)
    select r.dag_id, r.priority, line_of(r.dag_id), r.due_at
    from (
        select dag_id, max(priority) as priority, greatest(run_after, now()) as due_at, min(run_key) as first
        from made
        where state = 'queued'
        group by 1, 3
    ) as r
    order by r.first;
    return null;
end
$$;
create trigger wakes_of_new_runs after insert on dag_run
    referencing new table as made for each statement execute function wake_new_runs();
create function wake_changed_run() returns trigger language plpgsql as
$$
begin
    insert into run_wake (dag_id, priority, line, due_at)
    values (new.dag_id, new.priority, line_of(new.dag_id), greatest(new.run_after, now()));
    return null;
end
$$;
create trigger wake_of_changed_run after update of state, cancelled_by, quarantined_at, run_after, priority on dag_run
    for each row when (
        new.state = 'queued' and new.cancelled_by is null and new.quarantined_at is null
        and (old.state, old.cancelled_by, old.quarantined_at, old.run_after, old.priority)
            is distinct from (new.state, new.cancelled_by, new.quarantined_at, new.run_after, new.priority))
    execute function wake_changed_run();

-- A DAG is new or not paused any more, or has room for another run: a limit that was full is not. This costs a round nothing for other limits.
create function wake_dag() returns trigger language plpgsql as
$$ begin perform wake_runs(array[new.dag_id]); return null; end $$;
create trigger wake_of_new_dag after insert on dag for each row execute function wake_dag();
create trigger wake_of_unpaused_dag after update of is_paused on dag
    for each row when (old.is_paused and not new.is_paused) execute function wake_dag();
create function wake_dag_of_limit() returns trigger language plpgsql as
$$ begin perform wake_runs(array[old.name]); return null; end $$;
create trigger wake_of_room after update of used, capacity on concurrency_limit
    for each row when (new.kind = 'dag_runs' and old.used >= old.capacity and new.used < new.capacity) execute function wake_dag_of_limit();
create trigger wake_of_limit_gone after delete on concurrency_limit
    for each row when (old.kind = 'dag_runs') execute function wake_dag_of_limit();

-- A DAG, or the whole system, does not drain any more.
create function wake_closed() returns trigger language plpgsql as
$$
begin
    perform wake_runs(array[old.name]) where old.kind = 'dag';
    perform wake_runs(array(select distinct dag_id from dag_run where state = 'queued')) where old.kind = 'system';
    return null;
end
$$;
create trigger wake_of_state after update or delete on service_state
    for each row when (old.kind in ('dag', 'system')) execute function wake_closed();

-- The clock of all leases, one row. A gap in its ticks is time in which no service could be heard; after it all leases begin anew.
create table lease_clock (
    ticked_at     timestamptz not null,
    counted_from  timestamptz not null                       -- no lease is counted from earlier than this
);

--------------------------------------------------------------------------------------------------------------- history

-- Append-only: every move of every task instance, with its cause. Partitioned by the day in which the run was created.
create table task_event (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    at          timestamptz not null default clock_timestamp(),
    epoch       bigint not null,
    xact        bigint not null default pg_current_xact_id()::text::bigint,  -- that wrote it: exports go on behind one. BRIN knows no xid8
    try_number  smallint not null,
    event       text not null,
    state       task_state not null,
    detail      jsonb
) partition by range (run_key);
create table task_event_default partition of task_event default;
-- Summed up as it grows: what a summary leaves out is read by every look. A day is dropped as a whole and never filled again.
create index task_event_of_run on task_event using brin (run_key, xact) with (pages_per_range = 8, autosummarize = on);  -- views/list_task_events, and by xact the history pipeline

create table run_event (
    run_key  bigint not null,
    at       timestamptz not null default clock_timestamp(),
    event    text not null,
    state    run_state not null,
    actor    text not null,
    detail   jsonb,
    xact     bigint not null default pg_current_xact_id()::text::bigint,  -- as in task_event
    asker    jsonb                                           -- the task instance that triggered it or had it cleared (others/find_run); null: none did
);
create index run_event_exported on run_event using brin (xact) with (pages_per_range = 8, autosummarize = on);  -- by the history pipeline
-- A B-tree: rows go where deleted ones were, so no range of pages keeps to a range of runs.
create index run_event_of_run on run_event (run_key);                                                        -- views/list_run_events, others/find_run, callbacks/list_deadlines, callbacks/list_deadlines_of_run, operations/delete_runs

-- What people changed, tasks that set variables or asked for secrets, services that registered, requests that were refused. Never what is
-- secret. Append-only, except for what comes often: that is counted, in one row for each period.
create table audit_event (
    event_id    bigint generated always as identity primary key,
    at          timestamptz not null default now(),
    actor       text not null,
    action      text not null,                               -- kind.verb
    object      text collate "C" not null,                   -- its name; of a run DAG/RUN
    detail      jsonb,
    token_id    bigint,                                      -- that was shown, or that it came from; null: the database was reached itself
    address     text,                                        -- of who asked
    request_id  text,                                        -- the caller's, or one for all events of a request
    counted_as  text collate "C",                            -- period, and what is counted together; null: one event
    times       bigint not null default 1,
    last_at     timestamptz,                                 -- of those that are counted
    xact        xid8 not null default pg_current_xact_id()   -- the transaction that wrote it last: exports go on behind one
);
create unique index audit_event_counted on audit_event (counted_as) where counted_as is not null;             -- events/count
create index audit_event_of_object on audit_event (object, event_id);                                        -- events/list_all
create index audit_event_settled on audit_event (xact, event_id);                                            -- events/list_settled

-- Answers to requests that had an idempotency key, for those who ask again because theirs was lost. Without an answer only inside the
-- transaction that makes what is asked for.
create table kept_answer (
    person    text collate "C" not null,                     -- whose key it is
    key       text collate "C" not null,
    digest    bytea not null,                                -- of what was asked for
    status    smallint,
    location  text,                                          -- the header of that name
    answer    text,                                          -- JSON
    at        timestamptz not null default now(),
    primary key (person, key)
);
create index kept_answer_by_age on kept_answer (at);                                                         -- retention/delete_answers

-- How far the history pipeline has exported: at a moment, what transactions below a number wrote. One row, or none before its first export.
create table exported (
    is_only  boolean primary key default true check (is_only),
    past     bigint not null,
    at       timestamptz not null
);

-- What it made of history, a row a mart; the views of reports say what is in it.
create table mart (
    name     text primary key,
    made_at  timestamptz not null default now(),
    rows     jsonb not null
);

------------------------------------------------------------------------------------------------------------ reporting

-- What other programs read: BI tools, notebooks, the history pipeline. These views have a version in their name. Within a version columns
-- are added, at the end, and none is changed or taken away; the tables above are Evenflow's own. The role evenflow_reporting,
-- or any other that `evenflow db reporting` is told, can read these views and nothing else. A view that leaves rows out is a security
-- barrier, so that no function of a reader sees those. docs/reference/reporting.md is made from what follows: a view's comment, and of each
-- column its type and its meaning.
create schema evenflow_reporting_v1;

-- DAGs that Evenflow knows, as their newest versions say.
create view evenflow_reporting_v1.dags as
select
    d.dag_id,                                                -- text: its name
    d.is_active,                                             -- boolean: false when its file has gone
    d.is_paused,                                             -- boolean: whether nothing of it starts for the first time
    d.version_key,                                           -- bigint: its newest version
    v.version_number,                                        -- integer: the number that people see of it
    coalesce(v.outline ->> 'owner', '') as owner,            -- text: its owner; empty when it names none
    array(select jsonb_array_elements_text(v.outline -> 'tags')) as tags,   -- text[]: its tags
    coalesce((v.outline ->> 'max_active_runs')::int, case when not v.outline ? 'max_active_runs' then 16 end) as max_active_runs,     -- integer: runs at once; null is no limit
    coalesce((v.outline ->> 'max_active_tasks')::int, case when not v.outline ? 'max_active_tasks' then 16 end) as max_active_tasks,  -- integer: tasks of a run at once; null is no limit
    d.next_run_at,                                           -- timestamp with time zone: when its next scheduled run is made
    d.first_seen_at                                          -- timestamp with time zone: when it was seen first
from dag d
join dag_version v using (version_key);

-- Tasks of each version of each DAG that is still known: what its limits, its place in the graph and its owner are.
create view evenflow_reporting_v1.tasks as
select
    v.version_key,                                           -- bigint: the version of the DAG
    v.dag_id,                                                -- text: its DAG
    v.version_number,                                        -- integer: the number that people see of the version
    (t.position - 1)::int as task_index,                     -- integer: its place in the version, by which upstream refers to it
    t.task ->> 'task_id' as task_id,                         -- text: its name
    t.task ->> 'operator' as operator,                       -- text: what kind of task it is
    coalesce(v.outline ->> 'owner', '') as owner,            -- text: the owner of its DAG
    coalesce(t.task ->> 'pool', 'default_pool') as pool,     -- text: the pool that it takes slots of
    coalesce((t.task ->> 'pool_slots')::int, 1) as pool_slots,  -- integer: how many slots it takes
    coalesce(t.task ->> 'queue', 'default') as queue,        -- text: the queue of its workers
    coalesce(t.task ->> 'executor', (select q.executor from queue_executor q where q.queue = coalesce(t.task ->> 'queue', 'default')), 'worker') as executor,  -- text: what runs its tries, by the queues that executors have now
    coalesce((t.task ->> 'priority_weight')::int, 1) as priority_weight,  -- integer: its weight in the order, with those that the rule adds
    (t.task ->> 'max_active_tis_per_dag')::int as max_active_tis_per_dag,        -- integer: instances at once over all runs; null is no limit
    (t.task ->> 'max_active_tis_per_dagrun')::int as max_active_tis_per_dagrun,  -- integer: instances at once in a run; null is no limit
    coalesce((v.outline ->> 'max_active_tasks')::int, case when not v.outline ? 'max_active_tasks' then 16 end) as max_active_tasks,  -- integer: tasks of its run at once; null is no limit
    coalesce((t.task ->> 'retries')::int, 0) as retries,     -- integer: tries beyond the first
    array(select jsonb_array_elements_text(t.task -> 'upstream')::int) as upstream,  -- integer[]: indexes of the tasks that it waits for
    coalesce((v.outline ->> 'max_active_runs')::int, case when not v.outline ? 'max_active_runs' then 16 end) as max_active_runs  -- integer: runs of its DAG at once; null is no limit
from dag_version v
cross join lateral jsonb_array_elements(v.spec -> 'tasks') with ordinality as t (task, position);

-- Runs that are kept, each once.
create view evenflow_reporting_v1.runs as
select
    r.run_key,                                               -- bigint: its key, which ascends with the time at which it was made
    r.dag_id,                                                -- text: its DAG
    r.run_id,                                                -- text: its name
    r.version_key,                                           -- bigint: the version of the DAG that it is of
    r.state::text as state,                                  -- text: queued, running, success or failed
    r.run_type,                                              -- text: scheduled, manual, backfill or asset_triggered
    r.logical_date,                                          -- timestamp with time zone: the date that it is for; null when it is for none
    r.data_interval_start,                                   -- timestamp with time zone: the begin of the data that it is for
    r.data_interval_end,                                     -- timestamp with time zone: and the end
    r.run_after,                                             -- timestamp with time zone: when it was due
    r.priority,                                              -- integer: ahead of the weight of its tasks in the order
    r.created_at,                                            -- timestamp with time zone: when it was made
    r.started_at,                                            -- timestamp with time zone: when it began
    r.ended_at,                                              -- timestamp with time zone: when it ended
    r.reason,                                                -- text: why it failed, when tasks do not say it
    r.backfill_id                                            -- bigint: the backfill that made it, or made it run again
from dag_run r;

-- Task instances of these runs, as they are now. Those of a mapped task that nothing has happened to yet are here too, one row each, and
-- so are those of tasks that wait in a run that has not begun.
create view evenflow_reporting_v1.task_instances as
select
    r.run_key,                                               -- bigint: its run
    r.dag_id,                                                -- text: its DAG
    r.run_id,                                                -- text: the name of its run
    k.task_index,                                            -- integer: its task, by index
    k.task_id,                                               -- text: its task, by name
    w.map_index,                                             -- integer: which instance of a mapped task it is; -1 when the task is not mapped
    coalesce(t.state, w.virtual_state)::text as state,       -- text: none, scheduled, queued, running, deferred, up_for_retry, up_for_reschedule, success, failed, skipped, upstream_failed or removed
    coalesce(t.try_number, 0)::int as try_number,            -- integer: tries that have begun
    t.queued_at,                                             -- timestamp with time zone: when its last try was given to workers
    t.started_at,                                            -- timestamp with time zone: when its last try started
    t.ended_at,                                              -- timestamp with time zone: when its last try ended
    t.reason                                                 -- text: why it ended as it did, when that is not plain
from dag_run r
join task k on k.version_key = r.version_key
left join mapped_task m on m.run_key = r.run_key and m.task_index = k.task_index
cross join lateral (
    select -1 as map_index, 'none'::task_state as virtual_state where m.length is null
    union all
    select n, m.virtual_state from generate_series(0, m.length - 1) as n
) as w
left join task_instance t on t.run_key = r.run_key and t.task_index = k.task_index and t.map_index = w.map_index;

-- Every move of every task instance, with its cause. Events are only added.
create view evenflow_reporting_v1.task_events as
select
    e.run_key,                                               -- bigint: its run
    e.task_index,                                            -- integer: its task, by index
    e.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    e.at,                                                    -- timestamp with time zone: when it was written, by the clock of the database
    e.xact,                                                  -- bigint: the transaction that wrote it; what one wrote happened at once
    e.epoch,                                                 -- bigint: of the dispatch that it is about; 0 when there was none yet
    e.try_number::int as try_number,                         -- integer: the try that it is about; of ready the tries that had begun
    e.event,                                                 -- text: the cause, as in the reference of states
    e.state::text as state,                                  -- text: the state from then on
    e.detail,                                                -- jsonb: what else is known, such as the reason; null when nothing is
    r.dag_id,                                                -- text: its DAG; null when its run was deleted and its day is still kept
    r.run_id,                                                -- text: the name of its run; null as above
    k.task_id                                                -- text: its task, by name; null as above
from task_event e
left join dag_run r using (run_key)
left join task k on k.version_key = r.version_key and k.task_index = e.task_index;

-- Every move of every run, and what people did with it. Events are only added.
create view evenflow_reporting_v1.run_events as
select
    e.run_key,                                               -- bigint: its run
    e.at,                                                    -- timestamp with time zone: when it was written, by the clock of the database
    e.xact,                                                  -- bigint: the transaction that wrote it
    e.event,                                                 -- text: what happened
    e.state::text as state,                                  -- text: the state from then on
    e.actor,                                                 -- text: who did it
    e.detail                                                 -- jsonb: what else is known; null when nothing is
from run_event e;

-- How long task instances stayed in each state that is not an end, one row for each stay.
create view evenflow_reporting_v1.segments as
select
    s.run_key,                                               -- bigint: its run
    s.dag_id,                                                -- text: its DAG; null when its run was deleted and its day is still kept
    s.run_id,                                                -- text: the name of its run; null as above
    s.task_index,                                            -- integer: its task, by index
    s.task_id,                                               -- text: its task, by name; null as above
    s.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    s.try_number,                                            -- integer: the try; while it was scheduled the tries that had begun
    s.epoch,                                                 -- bigint: of the dispatch; 0 when there was none yet
    s.state,                                                 -- text: scheduled, queued, running, deferred, up_for_retry, up_for_reschedule or none
    s.event as because,                                      -- text: the event that it began with
    s.at as began_at,                                        -- timestamp with time zone: when it began
    s.until as ended_at,                                     -- timestamp with time zone: when it ended; null while it lasts
    extract(epoch from s.until - s.at)::float8 as seconds    -- double precision: how long it lasted; null while it lasts
from (
    select e.*, lead(e.at) over (
               partition by e.run_key, e.task_index, e.map_index
               order by e.at, e.epoch, case when e.event in ('grant', 'resume', 'requeue') then 0 when e.event = 'start' then 1 when e.event = 'ready' then 3 else 2 end
           ) as until
    from evenflow_reporting_v1.task_events e
) as s
where s.state in ('none', 'scheduled', 'queued', 'running', 'deferred', 'up_for_retry', 'up_for_reschedule');

-- Tries of task instances that were given to workers at least once.
create view evenflow_reporting_v1.tries as
select
    e.run_key,                                               -- bigint: its run
    e.task_index,                                            -- integer: its task, by index
    e.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    e.try_number,                                            -- integer: the try
    min(e.dag_id) as dag_id,                                 -- text: its DAG; null when its run was deleted and its day is still kept
    min(e.run_id) as run_id,                                 -- text: the name of its run; null as above
    min(e.task_id) as task_id,                               -- text: its task, by name; null as above
    min(e.at) filter (where e.event = 'grant') as queued_at,       -- timestamp with time zone: when it was given to workers first
    min(e.at) filter (where e.event = 'start') as started_at,      -- timestamp with time zone: when it started first; null when nobody said so before its end
    max(e.at) filter (where e.state not in ('queued', 'running', 'deferred', 'none', 'scheduled', 'removed')) as ended_at,  -- timestamp with time zone: when it ended; null while it lasts
    (array_agg(e.state order by e.at desc, e.epoch desc) filter (where e.event not in ('ready', 'clear', 'remove')))[1] as state,  -- text: how it ended, or what it does
    count(*) filter (where e.event in ('grant', 'requeue', 'resume')) as dispatches,  -- bigint: how often it went to a worker
    (array_agg(e.detail ->> 'reason' order by e.at desc, e.epoch desc) filter (where e.detail ? 'reason'))[1] as reason     -- text: why it ended so, when that is not plain
from evenflow_reporting_v1.task_events e
where e.try_number > 0 and e.event not in ('ready')
group by e.run_key, e.task_index, e.map_index, e.try_number
having count(*) filter (where e.event in ('grant', 'requeue', 'resume')) > 0;

-- What may be had at once, and how much of it is taken. Those of a run go with it.
create view evenflow_reporting_v1.limits with (security_barrier) as
select
    l.limit_id,                                              -- bigint: its key
    l.kind::text as kind,                                    -- text: pool, executor, dag_task (max_active_tis_per_dag), dag_runs (max_active_runs), run (max_active_tasks) or run_task (max_active_tis_per_dagrun)
    l.run_key,                                               -- bigint: the run that it is of; 0 when it is of none
    l.name,                                                  -- text: pool, executor, DAG/task, DAG, or the task of a run
    l.capacity,                                              -- integer: so much at once
    l.used                                                   -- integer: so much is taken, what was released since the last round included
from concurrency_limit l
where l.kind <> 'share';

-- Who has what of these limits now: task instances that are queued, run, or are deferred and keep it.
create view evenflow_reporting_v1.holds as
select
    h.run_key,                                               -- bigint: its run
    h.task_index,                                            -- integer: its task, by index
    h.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    h.epoch,                                                 -- bigint: of the dispatch
    h.kind as held_by,                                       -- text: dispatch (it is queued or runs) or deferral (it waits for a trigger)
    h.since,                                                 -- timestamp with time zone: since when
    l.limit_id,                                              -- bigint: the limit
    case when h.place = 1 and h.pool_slots > 0 then h.pool_slots else 1 end as slots  -- integer: how much of it
from (
    select run_key, task_index, map_index, epoch, 'dispatch' as kind, created_at as since, pool_slots, x.limit_id, x.place
    from dispatch cross join lateral unnest(holds) with ordinality as x (limit_id, place)
    union all
    select run_key, task_index, map_index, epoch, 'deferral', deferred_at, pool_slots, x.limit_id, x.place
    from deferral cross join lateral unnest(holds) with ordinality as x (limit_id, place)
    where purpose is null
) as h
join evenflow_reporting_v1.limits l using (limit_id);

-- What capacities pools and executors were given, and when. As old as the record of who changed what is kept.
create view evenflow_reporting_v1.limit_changes with (security_barrier) as
select
    a.at,                                                    -- timestamp with time zone: when
    split_part(a.action, '.', 1) as kind,                    -- text: pool or executor
    a.object::text as name,                                  -- text: which
    (a.detail ->> 'slots')::int as capacity                  -- integer: from then on
from audit_event a
where a.action in ('pool.set', 'executor.set') and a.detail ->> 'slots' is not null;

-- When DAGs were paused and unpaused. As old as the record of who changed what is kept.
create view evenflow_reporting_v1.pauses with (security_barrier) as
select
    a.at,                                                    -- timestamp with time zone: when
    a.object::text as dag_id,                                -- text: which DAG
    a.action = 'dag.pause' as is_paused                      -- boolean: from then on
from audit_event a
where a.action in ('dag.pause', 'dag.unpause');

-- What applications of Spark took, sessions of tries and Python applications that tries submitted, as their driver knew it last. A session that was
-- killed has told nothing.
create view evenflow_reporting_v1.spark_applications with (security_barrier) as
select
    c.run_key,                                               -- bigint: the run
    c.task_index,                                            -- integer: the task, by index
    c.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    c.at,                                                    -- timestamp with time zone: when it ended
    c.xact,                                                  -- bigint: the transaction that wrote this
    c.epoch,                                                 -- bigint: of the dispatch
    c.try_number::int as try_number,                         -- integer: the try
    c.value ->> 'application_id' as application_id,          -- text: the name that Spark gave it
    (c.value ->> 'cores')::int as cores,                     -- integer: cores that it had when it ended
    ((c.value ->> 'wall_s')::float8 * 1e6)::bigint as wall_us,  -- bigint: microseconds that it was there
    ((c.value ->> 'run_s')::float8 * 1e6)::bigint as task_us,   -- bigint: microseconds in which its tasks ran, all together
    ((c.value ->> 'gc_s')::float8 * 1e6)::bigint as gc_us,   -- bigint: of these, microseconds of garbage collection
    (c.value ->> 'input_bytes')::bigint as input_bytes,      -- bigint: bytes read
    (c.value ->> 'output_bytes')::bigint as output_bytes,    -- bigint: bytes written
    (c.value ->> 'shuffle_bytes')::bigint as shuffle_bytes,  -- bigint: bytes that went from stage to stage
    (c.value ->> 'spilled_bytes')::bigint as spilled_bytes   -- bigint: bytes that did not fit into memory, as they were on disk
from try_record c
where c.kind = 'spark_cost';

-- Which Evenflow this is and which state it has: an export of another one is not continued here.
create view evenflow_reporting_v1.installation with (security_barrier) as
select
    i.id,                                                    -- text: its id
    coalesce((select max(x.incarnation) from incarnation x where x.went_back), 0) as set_back_ms  -- bigint: when it was set back to an earlier state last, in milliseconds since 1970; 0 when it never was
from installation i;

-- Of the history pipeline, where it runs: by day (UTC) and DAG how late runs began, and how long tries waited once they could begin, at quantiles.
create view evenflow_reporting_v1.mart_lags with (security_barrier) as
select
    date '1970-01-01' + r.day as day,                        -- date: the day
    r.dag_id,                                                -- text: the DAG
    r.runs,                                                  -- bigint: runs that began
    r.tries,                                                 -- bigint: tries
    r.run_p50_us / 1e6 as run_p50_s,                         -- double precision: of the runs, how many seconds after they were due; the median
    r.run_p90_us / 1e6 as run_p90_s,                         -- double precision: the 90th percentile
    r.run_p99_us / 1e6 as run_p99_s,                         -- double precision: the 99th
    r.wait_p50_us / 1e6 as wait_p50_s,                       -- double precision: of the tries, how many seconds for limits and workers; the median
    r.wait_p90_us / 1e6 as wait_p90_s,                       -- double precision: the 90th percentile
    r.wait_p99_us / 1e6 as wait_p99_s                        -- double precision: the 99th
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (day int, dag_id text, runs bigint, tries bigint, run_p50_us float8, run_p90_us float8,
                                                    run_p99_us float8, wait_p50_us float8, wait_p90_us float8, wait_p99_us float8)
where m.name = 'lags';

-- By day, DAG and cause how long task instances waited, ran and were deferred.
create view evenflow_reporting_v1.mart_wait_by_cause with (security_barrier) as
select
    date '1970-01-01' + r.day as day,                        -- date: the day
    r.dag_id,                                                -- text: the DAG
    r.cause,                                                 -- text: upstream, pool, run cap, task cap, executor, no worker, paused, resume, retry delay, reschedule, scheduling, deferred or running
    r.limit_name,                                            -- text: the limit, where it was one
    r.times,                                                 -- bigint: how often
    r.us / 1e6 as seconds                                    -- double precision: how long together
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (day int, dag_id text, cause text, limit_name text, times bigint, us float8)
where m.name = 'wait_by_cause';

-- By hour how much of each limit was used that all runs share.
create view evenflow_reporting_v1.mart_slot_use with (security_barrier) as
select
    to_timestamp(r.hour * 3600.0) as hour,                   -- timestamp with time zone: when the hour began
    r.kind,                                                  -- text: pool, executor or dag_task
    r.name,                                                  -- text: which
    r.capacity,                                              -- integer: so much at once; null where nobody has recorded it
    r.most,                                                  -- bigint: used at most
    r.slot_us / 3.6e9 as average,                            -- double precision: used on average
    r.full_us / 1e6 as full_s                                -- double precision: how many seconds it was full
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (hour bigint, kind text, name text, capacity int, most bigint, slot_us float8, full_us float8)
where m.name = 'slot_use';

-- By task how long its tries run, and whether that has changed.
create view evenflow_reporting_v1.mart_durations with (security_barrier) as
select
    r.dag_id,                                                -- text: the DAG
    r.task_id,                                               -- text: the task
    r.tries,                                                 -- bigint: tries
    r.p50_us / 1e6 as p50_s,                                 -- double precision: seconds; the median
    r.p90_us / 1e6 as p90_s,                                 -- double precision: the 90th percentile
    r.p99_us / 1e6 as p99_s,                                 -- double precision: the 99th
    r.drift,                                                 -- double precision: the median of its last day, as a multiple of that of the days before
    r.drifts = 1 as drifts,                                  -- boolean: whether that is a quarter more or less, by ten tries at least
    r.worth                                                  -- double precision: how much it is worth a look, if it drifts: how far off it is
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (dag_id text, task_id text, tries bigint, p50_us float8, p90_us float8, p99_us float8,
                                                    drift float8, drifts int, worth float8)
where m.name = 'durations';

-- Tries that ran far longer than their task does.
create view evenflow_reporting_v1.mart_anomalies with (security_barrier) as
select
    r.dag_id,                                                -- text: the DAG
    r.task_id,                                               -- text: the task
    r.run_key,                                               -- bigint: the run, by its key
    r.run_id,                                                -- text: the run, by its name
    r.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    r.try_number,                                            -- integer: the try
    to_timestamp(r.began_us / 1e6) as began_at,              -- timestamp with time zone: when it started
    r.us / 1e6 as seconds,                                   -- double precision: how long it ran
    r.p50_us / 1e6 as usual_s,                               -- double precision: the median of its task
    r.worth                                                  -- double precision: how much it is worth a look: how many times as long as usual it ran
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (dag_id text, task_id text, run_key bigint, run_id text, map_index int, try_number int,
                                                    began_us float8, us float8, p50_us float8, worth float8)
where m.name = 'anomalies';

-- Tasks by how often they are on the critical path of a run of their DAG.
create view evenflow_reporting_v1.mart_critical_members with (security_barrier) as
select
    r.dag_id,                                                -- text: the DAG
    r.task_id,                                               -- text: the task
    r.on_path,                                               -- bigint: runs in which it is
    r.runs,                                                  -- bigint: of so many
    r.us / 1e6 as seconds,                                   -- double precision: its part of these paths
    r.share                                                  -- double precision: the same, as a share of all of them
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (dag_id text, task_id text, on_path bigint, runs bigint, us float8, share float8)
where m.name = 'critical_members';

-- By day, DAG and owner what tries took.
create view evenflow_reporting_v1.mart_costs with (security_barrier) as
select
    date '1970-01-01' + r.day as day,                        -- date: the day
    r.dag_id,                                                -- text: the DAG
    r.owner,                                                 -- text: its owner
    r.tries,                                                 -- bigint: tries that ran
    r.slot_us / 3.6e9 as slot_hours,                         -- double precision: hours of running, times the slots of their pools
    r.run_us / 3.6e9 as run_hours,                           -- double precision: hours of running
    r.deferred_us / 3.6e9 as deferred_hours,                 -- double precision: hours deferred
    r.wait_us / 3.6e9 as wait_hours                          -- double precision: hours waited, but for upstream tasks
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (day int, dag_id text, owner text, tries bigint, slot_us float8, run_us float8,
                                                    deferred_us float8, wait_us float8)
where m.name = 'costs';

-- By day, DAG, owner and application of Spark what it took.
create view evenflow_reporting_v1.mart_application_costs with (security_barrier) as
select
    date '1970-01-01' + r.day as day,                        -- date: the day on which it ended
    r.dag_id,                                                -- text: the DAG
    r.owner,                                                 -- text: its owner
    r.task_id,                                               -- text: the task
    r.run_id,                                                -- text: the run, by its name
    r.map_index,                                             -- integer: which instance of a mapped task; -1 when the task is not mapped
    r.try_number,                                            -- integer: the try
    r.application_id,                                        -- text: the name that Spark gave the application
    r.cores,                                                 -- integer: cores that it had when it ended
    r.core_us / 3.6e9 as core_hours,                         -- double precision: hours that it was there, times its cores
    r.task_us / 3.6e9 as task_hours,                         -- double precision: hours in which its tasks ran, all together
    r.gc_us / 3.6e9 as gc_hours,                             -- double precision: of these, hours of garbage collection
    r.input_bytes,                                           -- bigint: bytes read
    r.output_bytes,                                          -- bigint: bytes written
    r.shuffle_bytes,                                         -- bigint: bytes that went from stage to stage
    r.spilled_bytes                                          -- bigint: bytes that did not fit into memory, as they were on disk
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (day int, dag_id text, owner text, task_id text, run_id text, map_index int, try_number int,
                                                    application_id text, cores int, core_us float8, task_us float8, gc_us float8,
                                                    input_bytes bigint, output_bytes bigint, shuffle_bytes bigint, spilled_bytes bigint)
where m.name = 'application_costs';

-- By limit and day what more of it would have been worth.
create view evenflow_reporting_v1.mart_advice with (security_barrier) as
select
    date '1970-01-01' + r.day as day,                        -- date: the day
    r.cause,                                                 -- text: pool, run cap, task cap or executor
    r.limit_name,                                            -- text: which
    r.more,                                                  -- integer: with so much more of it
    r.saved_us / 3.6e9 as saved_hours,                       -- double precision: so many hours would not have been waited
    r.wait_us / 3.6e9 as wait_hours                          -- double precision: of so many
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (day int, cause text, limit_name text, more int, saved_us float8, wait_us float8)
where m.name = 'advice';

-- Limits that are worth raising, all days together, and by how much.
create view evenflow_reporting_v1.mart_worth_raising with (security_barrier) as
select
    r.cause,                                                 -- text: pool, run cap, task cap or executor
    r.limit_name,                                            -- text: which
    r.more,                                                  -- integer: by so much: the fewest more that save most of what was waited for it
    r.saved_us / 3.6e9 as saved_hours,                       -- double precision: so many hours would not have been waited
    r.wait_us / 3.6e9 as wait_hours,                         -- double precision: of so many
    r.worth                                                  -- double precision: how much it is worth a look, beside other limits
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (cause text, limit_name text, more int, saved_us float8, wait_us float8, worth float8)
where m.name = 'worth_raising';

-- What must never be in a history, and was.
create view evenflow_reporting_v1.mart_violations with (security_barrier) as
select
    r.kind,                                                  -- text: what kind of violation
    r.run_key,                                               -- bigint: the run, by its key; 0 of a limit that all runs share
    r.task_index,                                            -- integer: the task, by index; null where it is none of a task
    r.map_index,                                             -- integer: which instance of a mapped task
    to_timestamp(r.at_us / 1e6) as at,                       -- timestamp with time zone: when
    r.what                                                   -- text: what happened
from mart m
cross join lateral jsonb_to_recordset(m.rows) as r (kind text, run_key bigint, task_index int, map_index int, at_us float8, what text)
where m.name = 'violations';

-------------------------------------------------------------------------------------------------------- what is always there

insert into history_look (reader, snapshot) values ('notifications', pg_current_snapshot()), ('traces', pg_current_snapshot());
insert into lease_clock (ticked_at, counted_from) values (now(), now());
insert into pool (name, description, while_deferred) values ('default_pool', 'Tasks that name no pool', 'release');
insert into executor (name, kind, changed_by) values ('worker', 'native', 'evenflow');
insert into concurrency_limit (kind, name, capacity) values
    ('pool', 'default_pool', 128),
    ('executor', 'worker', 1000000);                         -- as good as none: workers claim as many as they have slots

-- What runs callbacks: a DAG without a file, whose code is that of the DAG which calls.
insert into pool (name, description, while_deferred) values ('callback_pool', 'Callbacks of tasks, runs and deadlines', 'release');
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
