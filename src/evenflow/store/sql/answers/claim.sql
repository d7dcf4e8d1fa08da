-- Takes a key for a request, whose answer follows in the same transaction. Waits for another transaction that has taken it: if that
-- one commits, the answer is there, and no row is inserted.
insert into kept_answer (person, key, digest) values (%(person)s, %(key)s, %(digest)s) on conflict do nothing
