-- Whether the event "e" was not visible when the snapshot of "look" was taken, whatever the order in which transactions began and
-- ended. "oldest" of "look" is where that snapshot begins.
e.xact >= look.oldest and not pg_visible_in_snapshot(e.xact::text::xid8, look.snapshot)
