-- What a running try may leave in object storage, to be looked for when it has ended: noted before it writes anything.
insert into xcom_garbage (object, at) values (%(epoch)s::bigint || '-*', now() + interval '1 hour') on conflict do nothing
