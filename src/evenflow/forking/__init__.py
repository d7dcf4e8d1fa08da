"""User code in processes of its own: forked from warm templates, watched, stopped, and seen to be dead."""
