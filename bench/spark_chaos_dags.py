"""What spark_chaos runs: an application, a query, and the file with their DAGs.

Each driver appends to the ledger of its run, ten times a second, so that it is known afterwards how many of one task ran at a time.
Of a query its rows do.
"""

from __future__ import annotations

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # options of JVMs that run for seconds
WORKS_S, ENDS_S = 6.0, 1.5  # of an application: long enough to be met in the middle

APPLICATION = f"""
import json, os, sys, threading, time
from pyspark.sql import SparkSession

ledger, run, key = os.path.join(sys.argv[1], sys.argv[2]), sys.argv[2], os.urandom(6).hex()

def say(what, **more):
    with open(ledger, "a") as file:
        file.write(json.dumps(dict(run=run, key=key, what=what, at=time.time(), pid=os.getpid(), jvm=os.getppid(), **more)) + "\\n")

def beat():
    while True:
        say("beat")
        time.sleep(0.1)

threading.Thread(target=beat, daemon=True).start()
spark = SparkSession.builder.getOrCreate()
say("running", app=spark.sparkContext.applicationId)
until = time.monotonic() + {WORKS_S}
while time.monotonic() < until:
    assert spark.range(1000).count() == 1000
    time.sleep(0.5)
say("done")
time.sleep({ENDS_S})
spark.stop()
"""

DAG_FILE = """
import json, os, time
from evenflow import DAG, SparkSubmit, get_current_context, task

LEDGER, WORKS_S, ENDS_S = {ledger!r}, {works_s}, {ends_s}

def say(what, **more):
    with open(os.path.join(LEDGER, more["run"]), "a") as file:
        file.write(json.dumps(dict(what=what, at=time.time(), **more)) + "\\n")

with DAG("connect"):
    @task.spark(conn_id="spark_connect", retries=4, retry_delay=0)
    def query(*, spark):
        of_it = dict(run=get_current_context()["run_id"], client=os.getpid())
        say("begun", key=os.urandom(6).hex(), **of_it)

        def rows(batches):
            key, until = os.urandom(6).hex(), time.monotonic() + WORKS_S
            say("running", key=key, **of_it)
            while time.monotonic() < until:
                say("beat", key=key, **of_it)
                time.sleep(0.1)
            say("done", key=key, **of_it)
            yield from batches

        assert spark.range(0, 1, 1, 1).mapInArrow(rows, "id long").count() == 1
        time.sleep(ENDS_S)

    query()

SMALL = {{"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.cores.max": "1", "spark.ui.enabled": "false",
         "spark.driver.extraJavaOptions": {options!r}}}
for mode in ("client", "cluster"):
    with DAG(mode):
        SparkSubmit(task_id="app", application="app.py", args=[LEDGER, "{{{{ run_id }}}}"], conf=SMALL, conn_id=mode,
                    retries=4, retry_delay=0)
"""


def dag_file(ledger: str) -> str:
    """``ledger`` is a folder, with a file for each run."""
    return DAG_FILE.format(ledger=ledger, works_s=WORKS_S, ends_s=ENDS_S, options=SHORT_LIVED)
