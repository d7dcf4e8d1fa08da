-- Moves that are legal: the state before, the event and the state after.
select before, event, state from (values {moves}) as m (before, event, state)
