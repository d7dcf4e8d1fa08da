-- Whether a turn gives the worker "s" nothing: it is to take less than all, or something is frozen, which claims look at try by
-- try.
exists (select from service_state c where c.kind = 'worker' and c.name = s.name or c.kind <> 'worker' and c.state = 'frozen')
