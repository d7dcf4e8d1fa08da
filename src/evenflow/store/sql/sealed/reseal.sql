-- Gives values that are locked their new seals.
update sealed_value v
set sealed = g.sealed
from unnest(%(kinds)s::text[], %(names)s::text[], %(seals)s::bytea[]) as g (kind, name, sealed)
where v.kind = g.kind and v.name = g.name
