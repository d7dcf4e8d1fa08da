-- Waiting: deferred tasks, which cost nothing while they wait and return at once.

-- CORE: deferrals, what a pool does with a slot meanwhile, what their triggers say
alter type report_kind add value 'event';
alter table pool add column while_deferred text not null default 'hold';
update pool set while_deferred = 'release' where name in ('default_pool', 'callback_pool');
create table deferral (
    run_key       bigint not null,
    task_index    int not null,
    map_index     int not null,
    epoch         bigint not null,
    queue         text not null,
    trigger       text not null,
    sealed        bytea not null,
    holds         bigint[] not null,
    pool_slots    int not null,
    retake        bigint[] not null,
    retake_slots  int not null,
    deferred_at   timestamptz not null default now(),
    timeout_at    timestamptz,
    began_at      timestamptz not null,
    ran_s         real not null,
    ready_at      timestamptz not null,
    triggerer_id  bigint,
    claim_number  int not null default 0,
    claimed_at    timestamptz,
    claim_key     text,
    failures      smallint not null default 0,
    due_at        timestamptz not null default now(),
    purpose       text,
    event         bytea,
    event_at      timestamptz,
    reason        text,
    intent        jsonb,
    primary key (run_key, task_index, map_index)
) with (fillfactor = 70);
create index deferral_unclaimed on deferral (queue, due_at) where triggerer_id is null and purpose is null;
create index deferral_of_triggerer on deferral (triggerer_id, claim_key) where triggerer_id is not null;

-- STATES: what takes on less than everything, and what starts all the same
create table service_state (
    kind      text not null,
    name      text not null,
    state     text not null,
    since     timestamptz not null default now(),
    actor     text not null,
    deadline  timestamptz,
    reason    text,
    primary key (kind, name)
);
alter table lane add column exempt boolean not null default false;
create index lane_exempt on lane (node_id) where exempt;
create index dag_run_running on dag_run (dag_id) where state = 'running';

-- WORK: what task instances store once, for all their tries
create table once_value (
    run_key     bigint not null,
    task_index  int not null,
    map_index   int not null,
    name        text not null,
    key         text not null default replace(gen_random_uuid()::text, '-', ''),
    value       jsonb,
    sealed      bytea,
    epoch       bigint not null,
    at          timestamptz not null default now(),
    primary key (run_key, task_index, map_index, name)
);
