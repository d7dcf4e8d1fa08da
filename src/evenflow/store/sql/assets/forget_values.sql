-- Forgets what is kept with an asset under a name, or all of it where none is given. Answers whether the try that wants it still
-- runs; its dispatch is kept until this commits (KEY SHARE).
with current as (
    {{current_try}}
), forgotten as (
    delete from asset_value v
    using current c
    where v.asset = %(asset)s and (%(name)s::text is null or v.name = %(name)s)
)
select from current
