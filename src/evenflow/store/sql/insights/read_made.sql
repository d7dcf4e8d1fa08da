-- When the history pipeline has returned its marts, and how many violations it has found; a null where it never has.
select max(made_at) as made_at, (select count(*) from evenflow_reporting_v1.mart_violations) as violations from mart
