-- What was released and is not folded into the limits yet.
select limit_id, sum(released)::int as released from wake group by limit_id
