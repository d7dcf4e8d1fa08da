-- Whether a try is in hand: its dispatch is there until its exit is applied or it is taken back.
select epoch
from dispatch
where epoch = %(epoch)s and run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s
