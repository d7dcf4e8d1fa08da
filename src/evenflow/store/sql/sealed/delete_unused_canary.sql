-- Forgets the canary where nobody loses by it: nothing else is sealed, and no other API runs.
delete from sealed_value
where kind = 'canary' and name = %(name)s
  and not exists (select from sealed_value where kind <> 'canary')
  and not exists (select from service where kind = 'api' and state in ('active', 'draining'))
