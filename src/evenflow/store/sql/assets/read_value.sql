-- What tasks keep with an asset under a name. The day is noted, once a day, so that what is in use is not deleted.
with asked as (
    update asset_value set asked_on = current_date
    where asset = %(asset)s and name = %(name)s and asked_on < current_date
)
select value::text from asset_value where asset = %(asset)s and name = %(name)s
