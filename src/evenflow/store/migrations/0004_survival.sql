-- Survive: what holds when schedulers, workers and the database may die at any moment.
-- works from: 4

-- SAFE: keys and tokens that can be changed and revoked; a database that was set back
create table token_key (
    key_id      int primary key,
    value       bytea not null,
    created_at  timestamptz not null default now()
);

create table token (
    token_id    bigint generated always as identity primary key,
    kind        text not null,                               -- operator, worker, processor, triggerer
    name        text not null,
    created_at  timestamptz not null default now(),
    created_by  text not null,
    expires_at  timestamptz not null,
    key_id      int not null,                                -- that it is signed with
    revoked_at  timestamptz,
    revoked_by  text
);

create table incarnation (
    incarnation  bigint primary key,                         -- milliseconds since 1970, so that no two restores of one dump have the same
    began_at     timestamptz not null default now(),
    reason       text not null,
    began_by     text not null
);
insert into token_key (key_id, value) select 1, value from secret where name = 'token_key';
drop table secret;

-- SET: settings with their history; which schemas programs know, and must know
alter table schema_version add column works_from int not null default 0;
alter table setting add column version bigint not null default 0;
create table setting_change (
    version     bigint generated always as identity primary key,
    name        text not null,
    value       jsonb,
    changed_at  timestamptz not null default now(),
    changed_by  text not null
);
create index setting_change_of_name on setting_change (name, version);
with made as (
    insert into setting_change (name, value, changed_at, changed_by)
    select name, value, changed_at, changed_by from setting order by changed_at
    returning version, name
)
update setting s set version = made.version from made where made.name = s.name;
alter table service add column schema_known int not null default 0;

-- QUAR: runs and other objects that are set aside because handling them raised an exception
alter table dag_run add column quarantined_at timestamptz;
alter table report add column held boolean not null default false;
alter table timer add column held boolean not null default false;
drop index report_oldest;
create index report_oldest on report (report_id) where not held;
drop index timer_due;
create index timer_due on timer (due_at) where not held;
create table quarantine (
    kind     text not null,
    object   text not null,
    run_key  bigint references dag_run on delete cascade,
    since    timestamptz not null default now(),
    reason   text not null,
    primary key (kind, object)
);

-- LEASE: leases are counted only while somebody can be heard
create table lease_clock (
    ticked_at     timestamptz not null,
    counted_from  timestamptz not null                       -- no lease is counted from earlier than this
);
insert into lease_clock (ticked_at, counted_from) values (now(), now());

-- OBS: files that cannot be loaded, counted without reading the others
create index dag_file_broken on dag_file (bundle, file) where error is not null;

-- GAPS: runs that were deleted and of which there was too much for one transaction: task instances, results and history of them are left.
create table run_garbage (
    run_key  bigint primary key
);
