-- A command line asks whether it was answered; the time since its last question is that of the row as it was. An answered login is
-- not found again: a token is given out once, even if another process shows the same code at that moment. The row is locked first,
-- so that two of them see each other.
with asking as (
    select * from device_login where digest = %(digest)s and expires_at > now() for update
), kept as (
    update device_login d set polled_at = now() from asking a where d.digest = a.digest and a.is_approved is null
), taken as (
    delete from device_login d using asking a where d.digest = a.digest and a.is_approved is not null
    returning d.digest
)
select a.is_approved, a.answered_by, a.machine, a.address, a.role, a.days,
       extract(epoch from now() - a.polled_at)::float8 as polled_s
from asking a
where a.is_approved is null or exists (select from taken)
