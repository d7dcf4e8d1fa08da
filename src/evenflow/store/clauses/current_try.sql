-- The try that speaks, as long as it is not over. Its dispatch is kept until this commits (KEY SHARE).
select run_key, task_index, map_index, epoch, try_number from dispatch where epoch = %(epoch)s for key share
