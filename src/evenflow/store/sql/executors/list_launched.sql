-- Executors that are sent their tries, with what launchers go by.
select name, kind, queues, options from executor where kind <> 'native' order by name
