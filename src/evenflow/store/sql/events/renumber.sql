-- Events that came from another server bear the number of this transaction: those of the other one mean nothing here.
update audit_event set xact = pg_current_xact_id()
