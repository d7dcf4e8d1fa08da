-- A pool that nobody uses. Its limit stays, for nodes refer to it; a pool that is made under this name gets it again.
delete from pool where name = %(name)s
