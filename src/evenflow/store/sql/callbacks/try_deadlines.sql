-- Whether the database can tell when these deadlines of a DAG are: it knows their time zones, and their times are times. It fails
-- where it would fail for every new run.
select due_of_deadline(d.deadline, '', now(), now(), now()) from jsonb_array_elements(%(deadlines)s::jsonb) as d (deadline)
