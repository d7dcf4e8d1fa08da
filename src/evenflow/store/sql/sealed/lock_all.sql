-- All sealed values, to be sealed anew. Locked (NO KEY UPDATE), so that a change made meanwhile is not overwritten.
select kind, name, sealed from sealed_value order by kind, name for no key update
