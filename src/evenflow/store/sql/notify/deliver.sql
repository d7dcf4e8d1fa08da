-- As notify/wake: which workers the commit before has given tries, and that others wait for whoever comes first.
select set_config('synchronous_commit', 'off', true), pg_notify('dispatch', word)
from jsonb_array_elements_text(current_setting('evenflow.given')::jsonb) as word
