"""Fills the database of an Airflow, by Airflow's own code: a connection and a variable with secrets, pools, and a DAG with runs of
its schedule, one of which has not ended.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models import Connection, Pool, Variable
from airflow.models.dag import DagModel
from airflow.models.serialized_dag import SerializedDagModel
from airflow.timetables.base import DataInterval
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

BUNDLE = "dags-folder"


def main(folder: Path) -> None:
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(str(folder), bundle_path=folder, bundle_name=BUNDLE)
    with create_session() as session:
        session.add(Connection("shop", "postgres", "the shop", "db", "me", "open-sesame", "orders", 5432, {"sslmode": "require"}))
        session.add(Pool(pool="narrow", slots=3, description="few", include_deferred=True))
        session.add(Pool(pool="wide", slots=-1, description="", include_deferred=False))
    Variable.set("api_password", "hush", description="of the shop")
    sync_bag_to_db(bag, BUNDLE, None)
    with create_session() as session:
        session.get(DagModel, "nightly").is_paused = False
        dag = SerializedDagModel.get_dag("nightly", session=session)
        for day, state in ((1, DagRunState.SUCCESS), (2, DagRunState.FAILED), (3, DagRunState.RUNNING)):
            date = datetime(2026, 11, day, tzinfo=UTC)
            dag.create_dagrun(
                run_id=f"scheduled__{day}",
                logical_date=date,
                data_interval=DataInterval.exact(date),
                run_after=date,
                run_type=DagRunType.SCHEDULED,
                triggered_by=DagRunTriggeredByType.TIMETABLE,
                state=state,
                session=session,
            )
    sync_bag_to_db(bag, BUNDLE, None)


main(Path(sys.argv[1]))
