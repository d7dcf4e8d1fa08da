-- DAGs by the slot hours that they took, all days together.
select dag_id, max(owner) as owner, sum(tries)::bigint as tries, sum(slot_hours) as slot_hours, sum(wait_hours) as wait_hours
from evenflow_reporting_v1.mart_costs
group by dag_id
order by slot_hours desc, dag_id
limit %(most)s
