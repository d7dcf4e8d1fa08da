-- Beats of the future, after this server's clock was set back: else their services would live until then, whatever becomes of them.
update service set beat_at = clock_timestamp() where state in ('active', 'draining') and beat_at > clock_timestamp()
