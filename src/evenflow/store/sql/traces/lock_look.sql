-- One API server at a time looks for runs that have ended. The next statement, under this lock, sees what the look before has
-- written.
select from history_look where reader = %(reader)s for update skip locked
