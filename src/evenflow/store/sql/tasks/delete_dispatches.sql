-- Deleting a dispatch releases its holds: each is deleted exactly once, so they are released exactly once.
with deleted as (delete from dispatch where epoch = any(%(epochs)s::bigint[]) returning 1)
select expect_rows(count(*), %(expected)s, 'Deleting dispatches') from deleted
