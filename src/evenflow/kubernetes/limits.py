"""Limits of requests to clusters, each with its reason. In seconds, unless the comment says else."""

from __future__ import annotations

BURST = 200.0  # requests at once after a rest: those of a hundred pods
IN_FLIGHT = 64  # requests; beyond it they wait here and not in the queues of the API server
CONNECT_S = 5.0  # an API server is near, or it is not there
ANSWER_S = 30.0  # for an answer; webhooks of admission may take 10 each
PATIENCE_S = 20.0  # that a request is sent again: longer than a control plane needs for the change of its leader
FIRST_PAUSE_S = 0.1  # between two attempts, twice as long each time
LONGEST_PAUSE_S = 5.0  # so that what waits for a cluster that is back waits no longer
LONGEST_TOLD_PAUSE_S = 30.0  # of a Retry-After: who asks for more is asked again then
LIST_PAGE = 500  # objects of one answer to a list: pods are 5 to 10 kB each
WATCH_LASTS_S = 60.0  # that a watch lasts: a connection that is dead without a word hides no more than this
WATCH_SILENCE_S = 75.0  # without a byte of it; the server ends it before
BROKEN_OFF_S = 1.0  # a watch that lasts for less does not work; connections that break now and then do no harm
RELIST_S = 300.0  # until all is listed again, whatever the watch has said
TOKEN_S = 60.0  # that a token file is believed: kubelets change one when 80 % of its hour is over
MESSAGE_CHARS = 1_000  # of what a cluster says: it becomes a reason, which people read in tables

# -- pods of tries, which launchers make ---------------------------------------------------------------------------------

GRACE_S = 30  # from the TERM of a pod to its KILL, unless its template says else: as Kubernetes gives by default
LOOK_S = 2.0  # between two looks at all pods beside what the database has; whatever an event did not say is seen then
REST_S = 0.1  # between two looks when something happens all the time: a look is a statement of the database
ENDED_S = 30.0  # that a pod may take to end once its try has: its last log and its goodbye
REPORTED_S = 5.0  # that the end of a try may be on its way when its pod has ended: then it is the pod's
GONE_S = 20.0  # without a pod until what was sent of a try is sent again: longer than a list may lag behind
NAME_CHARS = 63  # of a pod: it is a host name
LAST_WORDS_S = 10  # of the grace of a pod: for the goodbye of its worker, after the time that its try has to end
TEMPLATE_BYTES = 256 * 1024  # of a template: etcd takes objects of 1.5 MB, and each pod is one
