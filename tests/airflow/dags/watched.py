import os

from airflow.providers.standard.triggers.file import FileDeleteTrigger
from airflow.sdk import DAG, Asset, AssetWatcher, task
from lines_of_a_file import LinesTrigger

FOLDER = os.environ["WATCHED"]
file = Asset("file", watchers=[AssetWatcher("flag", FileDeleteTrigger(filepath=f"{FOLDER}/flag", poke_interval=0.2))])
lines = Asset("lines", watchers=[AssetWatcher("lines", LinesTrigger(f"{FOLDER}/lines"))])

with DAG("watched", schedule=file | lines):

    @task
    def told(triggering_asset_events=None):
        for asset, events in triggering_asset_events.items():
            for event in events:
                print(f"told: {asset.name} {event.extra['payload']}")

    told()
