-- Limits that are worth raising, all days together, and by how much: by the fewest slots more that save most of what was waited for it, or, where
-- none do, by the most that were tried. The more it saves the more it is worth a look.
with together as (
    select cause, limit_name, more, sum(saved_us) as saved_us, sum(wait_us) as wait_us from advice group by cause, limit_name, more
), judged as (
    select t.*, case when saved_us >= 0.8 * wait_us then 1 else 0 end as saves_most from together t
), placed as (
    select j.*,
           row_number() over (partition by cause, limit_name order by saves_most desc, case when saves_most = 1 then more else -more end) as place
    from judged j
)
select cause, limit_name, more, saved_us, wait_us, saved_us as worth from placed where place = 1
