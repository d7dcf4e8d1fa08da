-- Deletes answers that are older than this number of hours, up to a limit.
delete from kept_answer
where ctid = any(array(
    select k.ctid from kept_answer k where k.at < now() - make_interval(hours => %(hours)s) order by k.at limit %(limit)s))
