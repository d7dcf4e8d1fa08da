-- A command line asks to be logged in; those that are over are forgotten. Nothing is answered when too many ask, from here or at
-- all: as many more may as ask at one moment.
with forgotten as (
    delete from device_login where expires_at < now()
)
insert into device_login (digest, user_digest, machine, address, role, days, expires_at)
select %(digest)s, %(user_digest)s, %(machine)s, %(address)s, %(role)s, %(days)s, now() + make_interval(secs => %(ttl)s)
where (select count(*) from device_login where expires_at > now()) < %(most)s
  and (select count(*) from device_login where expires_at > now() and address = %(address)s) < %(most_here)s
returning expires_at
