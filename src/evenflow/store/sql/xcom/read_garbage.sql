-- Objects to be deleted, the oldest first.
select object from xcom_garbage order by at limit %(limit)s
