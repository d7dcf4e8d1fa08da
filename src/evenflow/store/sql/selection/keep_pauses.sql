-- Which of these DAGs are paused, as long as this transaction lasts. SHARE: who pauses or unpauses one waits for the lanes that are being
-- stored here, so that they are not missed when its lanes are parked or opened.
with kept as (select dag_id, is_paused from dag where dag_id = any(%(dag_ids)s) order by dag_id for share)
select dag_id from kept where is_paused
