-- How an asset is partitioned, and its first partition. No row: there is no such asset.
select a.partitions, (select min(p.partition) from asset_partition p where p.asset = a.name) as first
from asset a
where a.name = %(asset)s
