"""Limits of requests to clusters, each with its reason. In seconds, unless the comment says otherwise."""

from __future__ import annotations

BURST = 200.0  # requests at once after a rest: those of a hundred pods
IN_FLIGHT = 64  # requests; further ones wait here and not in the queues of the API server
CONNECT_S = 5.0  # an API server is near, or it is down
ANSWER_S = 30.0  # for an answer; webhooks of admission may take 10 each
PATIENCE_S = 20.0  # in which a request is repeated: longer than a control plane needs to change its leader
FIRST_PAUSE_S = 0.1  # between two attempts, twice as long each time
LONGEST_PAUSE_S = 5.0  # so that work waits no longer for a cluster that is back
LONGEST_TOLD_PAUSE_S = 30.0  # of a Retry-After: after a longer one the request is repeated earlier
LIST_PAGE = 500  # objects of one answer to a list: pods are 5 to 10 kB each
WATCH_LASTS_S = 60.0  # of a watch: a silently dead connection hides no more than this
WATCH_SILENCE_S = 75.0  # without a byte of it; the server ends it earlier
BROKEN_OFF_S = 1.0  # a shorter watch does not work; occasional broken connections do no harm
RELIST_S = 300.0  # until everything is listed again, whatever the watch has reported
TOKEN_S = 60.0  # in which a token file is not read again: kubelets change one when 80 % of its hour is over
MESSAGE_CHARS = 1_000  # of a cluster's message: it becomes a reason, which people read in tables

# -- pods of tries, which launchers make ---------------------------------------------------------------------------------

GRACE_S = 30  # from the TERM of a pod to its KILL, unless its template says otherwise: Kubernetes' default
LOOK_S = 2.0  # between two comparisons of all pods with the database; changes without an event are found then
REST_S = 0.1  # between two comparisons during constant events: a comparison is a statement of the database
WAITING_TOLD = 100  # unclaimed pods of an executor that a launcher tells of: each has a few hundred bytes in its row
ENDED_S = 30.0  # for a pod to end after its try: its last log and its goodbye
REPORTED_S = 5.0  # in which the end of a try may be on its way after its pod has ended; then the pod's end counts
NAME_CHARS = 63  # of a pod: it is a host name
LAST_WORDS_S = 10  # of the grace of a pod: for the goodbye of its worker, after the time in which its try ends
TEMPLATE_BYTES = 256 * 1024  # of a template: etcd takes objects of 1.5 MB, and each pod is one
