-- Every API looks at the keys again.
select pg_notify('tokens', '')
