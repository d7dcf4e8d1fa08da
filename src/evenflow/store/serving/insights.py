"""What the history pipeline has made of history, summed up for people who look at it. For the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from evenflow.contracts.rest.insights import Insights
from evenflow.core.limits import INSIGHT_DAYS, INSIGHT_ROWS
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql


async def read_insights(conn: AsyncConn) -> Insights:
    """Without days where the pipeline has never returned anything."""
    (made,) = await _rows(conn, "insights/read_made", 1)
    made_at: datetime | None = made["made_at"]
    return Insights(
        made_at=made_at,
        violations=made["violations"],
        days=list(reversed(await _rows(conn, "insights/read_days", INSIGHT_DAYS))),
        advice=await _rows(conn, "insights/list_worth_raising", INSIGHT_ROWS),
        dearest=await _rows(conn, "insights/list_dearest", INSIGHT_ROWS),
        drifting=await _rows(conn, "insights/list_drifting", INSIGHT_ROWS),
        anomalies=await _rows(conn, "insights/list_anomalies", INSIGHT_ROWS),
    )


async def _rows(conn: AsyncConn, name: str, most: int) -> list[Any]:
    return await (await conn.cursor(row_factory=dict_row).execute(sql(name), {"most": most}, prepare=False)).fetchall()
