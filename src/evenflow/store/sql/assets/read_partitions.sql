-- How an asset is partitioned, and its first partition by time: partitions from when it was partitioned in another way do not count
-- as dates. No row: the asset does not exist.
select a.partitions,
       (select min(p.partition) from asset_partition p
        where p.asset = a.name
          and p.partition ~ case a.partitions ->> 'every'
                                when 'hour' then '^\d{4}-\d\d-\d\dT\d\d$' when 'day' then '^\d{4}-\d\d-\d\d$' when 'month' then '^\d{4}-\d\d$'
                            end) as first
from asset a
where a.name = %(asset)s and (%(scope)s::jsonb is null or a.name in (select assets_in_scope(%(scope)s::jsonb)))
