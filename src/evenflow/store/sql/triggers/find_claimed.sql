-- Whether a trigger still waits, in this claim of it.
select epoch
from deferral
where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s and epoch = %(epoch)s
  and claim_number = %(claim)s and triggerer_id is not null and purpose is null
