-- A pool that nobody uses. Its limit stays, for limit classes refer to it; a pool that is made under this name gets it again,
-- open as any new pool.
with opened as (delete from service_state where kind = 'pool' and name = %(name)s)
delete from pool where name = %(name)s
