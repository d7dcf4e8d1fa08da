-- A claim ends its wait at this API server. No row: it did not wait, as when a turn has answered it; then its worker is still to
-- hear what it was given.
update service
set waiting_claim = null, waits_since = null
where service_id = %(service_id)s and waiting_claim ->> 'key' = %(claim_key)s and waiting_claim ->> 'api' = %(api)s::bigint::text
returning set_config('synchronous_commit', 'off', true)
