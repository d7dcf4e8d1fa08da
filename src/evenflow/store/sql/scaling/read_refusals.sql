-- What each autoscaler that lives says of the fleets that it cannot look after, as {fleet: reason}: one of them acts, the others
-- say nothing. They are few.
select coalesce(s.detail -> 'refused', '{}') from service s where s.kind = 'autoscaler' and {{is_healthy}}
