-- Deleting a dispatch releases its holds: each is deleted exactly once, so they are released exactly once.
delete from dispatch where epoch = any(%(epochs)s::bigint[])
