import time
from pathlib import Path

from airflow.sdk import DAG, BaseOperator


class Waits(BaseOperator):
    def __init__(self, *, marks: str, **more) -> None:
        super().__init__(**more)
        self.marks = marks

    template_fields = ("marks",)

    def execute(self, context) -> None:
        Path(self.marks, "started").touch()
        time.sleep(600)

    def on_kill(self) -> None:
        Path(self.marks, "stopped").touch()


with DAG("kills", schedule=None, params={"marks": "/tmp"}):
    Waits(task_id="wait", marks="{{ params.marks }}")
