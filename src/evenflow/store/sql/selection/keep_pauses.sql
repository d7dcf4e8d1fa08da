-- Which of these DAGs are paused, as long as this transaction lasts. SHARE: a transaction that pauses or unpauses one waits until
-- the lanes of this one are stored, so it misses none of them when it parks or opens the lanes of the DAG.
with kept as (select dag_id, is_paused from dag where dag_id = any(%(dag_ids)s) order by dag_id for share)
select dag_id from kept where is_paused
