-- As notify/wake: which workers the commit before has given tries, and that other tries wait for a claim.
select set_config('synchronous_commit', 'off', true), pg_notify('dispatch', word)
from jsonb_array_elements_text(current_setting('evenflow.given')::jsonb) as word
