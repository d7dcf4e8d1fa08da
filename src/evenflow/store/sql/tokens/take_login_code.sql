-- A code is good once: of two that show it at one moment, to whichever API server, one finds the row.
delete from login_code
where digest = %(digest)s
returning name, token_id, expires_at > now() as is_good
