-- How an asset is partitioned, its first partition by time, and those of the running interval and of the future. Partitions from
-- when it was partitioned in another way do not count as dates. No row: the asset does not exist.
select a.partitions,
       (select min(p.partition) from asset_partition p
        where p.asset = a.name
          and p.partition ~ case a.partitions ->> 'every'
                                when 'hour' then '^\d{4}-\d\d-\d\dT\d\d$' when 'day' then '^\d{4}-\d\d-\d\d$'
                                    when 'month' then '^\d{4}-\d\d$'
                            end) as first,
       array(select p.partition from asset_partition p
             where p.asset = a.name
               and p.partition >= to_char(now() at time zone 'utc', case a.partitions ->> 'every'
                                              when 'hour' then 'YYYY-MM-DD"T"HH24' when 'day' then 'YYYY-MM-DD'
                                                  when 'month' then 'YYYY-MM'
                                          end)
             order by p.partition limit 1000) as later
from asset a
where a.name = %(asset)s and (%(scope)s::jsonb is null or a.name in (select assets_in_scope(%(scope)s::jsonb)))
