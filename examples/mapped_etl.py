"""Extract, transform, load, with as many transform tasks as there happen to be shops."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import gettempdir

from evenflow import Param, dag, task

SALES = {"Basel": [12.5, 80.0, 7.25], "Oslo": [99.9], "Porto": [15.0, 15.0], "Riga": []}


@task
def extract() -> list[str]:
    """Which shops there are today is known only when this runs."""
    return sorted(SALES)


@task
def transform(shop: str, vat: float) -> dict[str, str | float]:
    """One instance for each shop, all in parallel."""
    return {"shop": shop, "net": round(sum(SALES[shop]) / (1 + vat), 2)}


@task
def load(totals: list[dict[str, str | float]], folder: str) -> str:
    """Gets the results of all instances, in order."""
    path = Path(folder or gettempdir()) / "totals.json"
    path.write_text(json.dumps(totals, indent=1))
    print(f"{len(totals)} shops in {path}")
    return str(path)


@dag(schedule="0 6 * * *", tags=["example"])
def mapped_etl(
    vat: float = Param(0.2, type="number", minimum=0, maximum=1, description="Value added tax that the sales include."),
    folder: str = Param("", type="string", description="Where to write; empty: the system's temporary folder."),
) -> None:
    load(transform.partial(vat=vat).expand(shop=extract()), folder)


mapped_etl()
