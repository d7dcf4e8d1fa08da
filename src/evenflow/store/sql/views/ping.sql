-- Whether the database answers.
select 1
