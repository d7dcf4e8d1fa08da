-- From a task of a run to the fourth before it on its path. A table of its own: an engine that puts the text of a table in the place of its
-- name would make a plan four times as large with each further jump.
select a.run_key, a.task_index, d.upstream
from blockers a
join blockers b on b.run_key = a.run_key and b.task_index = a.upstream
join blockers c on c.run_key = b.run_key and c.task_index = b.upstream
join blockers d on d.run_key = c.run_key and d.task_index = c.upstream
where d.upstream is not null
