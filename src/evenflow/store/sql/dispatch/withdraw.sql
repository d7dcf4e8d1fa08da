-- A claim waits at this API server no more; answers nothing when it did not, as when a turn has answered it: what that gave it, it is still to hear.
update service
set waiting_claim = null, waits_since = null
where service_id = %(service_id)s and waiting_claim ->> 'key' = %(claim_key)s and waiting_claim ->> 'api' = %(api)s::bigint::text
returning set_config('synchronous_commit', 'off', true)
