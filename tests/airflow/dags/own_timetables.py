import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from dateutil.relativedelta import relativedelta


class AfterLunch(Timetable):
    """Two days of data, half a day after their end."""

    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        start = restriction.earliest if last_automated_data_interval is None else last_automated_data_interval.end
        if start > restriction.latest:
            return None
        return DagRunInfo(run_after=start.add(days=2, hours=12), data_interval=DataInterval(start, start.add(days=2)))


FIRST = pendulum.datetime(2025, 1, 1)

with DAG("after_lunch", schedule=AfterLunch(), start_date=FIRST, end_date=pendulum.datetime(2025, 10, 31), catchup=True):
    EmptyOperator(task_id="a")

with DAG("months", schedule=relativedelta(months=1), start_date=FIRST, end_date=pendulum.datetime(2025, 3, 15), catchup=True):
    EmptyOperator(task_id="a")
