-- Workers of a plan take tries again: all of them, or those of these names.
update service
set fence = null, fence_until = null
where kind = 'worker' and state in ('active', 'draining') and fence = %(plan)s
    and (%(names)s::text[] is null or name = any(%(names)s::text[]))
returning name
