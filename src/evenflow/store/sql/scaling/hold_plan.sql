-- Whether a plan is there: the number of a plan is that of its first step. FOR KEY SHARE: its fleet, with which it would go, is not
-- deleted until this transaction ends.
select step_id from scaling_step where step_id = %(plan)s for key share
