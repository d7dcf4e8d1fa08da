-- It was sent, or refused for good.
update try_record set send_at = null
where run_key = %(run_key)s and epoch = %(epoch)s and kind = 'lineage'
