-- Beats of the future, after this server's clock was set back: else their services would live until then, whatever becomes of them,
-- and the tries of those that are lost would stay theirs.
update service set beat_at = clock_timestamp()
where (state in ('active', 'draining') or state = 'lost' and not settled) and beat_at > clock_timestamp()
