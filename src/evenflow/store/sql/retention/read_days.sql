-- For how many days history is kept, as far as somebody has set it; and the time.
select now(), (select value from setting where name = %(name)s)
