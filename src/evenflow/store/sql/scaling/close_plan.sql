-- A plan has ended.
update scaling_step set open = false where plan = %(plan)s and open
