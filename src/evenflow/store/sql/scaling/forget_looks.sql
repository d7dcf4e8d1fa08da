-- What was seen of a fleet, and done with it, longer ago than that. Open plans stay.
with looks as (
    delete from scaling_look where fleet = %(fleet)s and at < now() - make_interval(secs => %(kept_s)s)
)
delete from scaling_step where fleet = %(fleet)s and not open and at < now() - make_interval(secs => %(kept_s)s)
