-- Deletes values of assets that no task has asked for in this number of days, up to a limit.
delete from asset_value
where ctid = any(array(
    select v.ctid from asset_value v where v.asked_on < current_date - %(unasked_days)s::int order by v.asked_on limit %(limit)s))
