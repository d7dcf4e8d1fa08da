-- The transaction in hand may last as long again from now: only a timeout that is switched off and on begins anew.
select set_config('transaction_timeout', '0', true), set_config('transaction_timeout', %(hang)s::text, true)
