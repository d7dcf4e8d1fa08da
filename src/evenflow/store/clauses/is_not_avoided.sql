-- Whether this worker may have the try "d" now. One that could not start it comes after others for 5 s.
(avoid is distinct from %(service_id)s or created_at < now() - interval '5 seconds')
