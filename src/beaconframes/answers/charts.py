"""The charts of the local explorer: line charts of its epochs, as PNG."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint import RequestRefused

if TYPE_CHECKING:
    from beaconframes.answers.view import DatasetView

WIDTH, HEIGHT, MARGIN = 800, 400, 48
TEXT_COLOR, LINE_COLOR, BACKGROUND = "#222222", "#1f77b4", "white"

CHARTS = {
    "validators": ("Validators", pl.col("validators_count")),
    "staked_ether": ("Staked ether", pl.col("eligible_ether_gwei") / 1e9),
    "average_balance": ("Average balance, ETH", pl.col("average_validator_balance_gwei") / 1e9),
    "participation_rate": ("Participation rate", pl.col("global_participation_rate")),
    "blocks": ("Blocks proposed per epoch", pl.col("proposed_blocks")),
    "deposits": ("Deposits per epoch", pl.col("deposits_count")),
    "withdrawals": ("Withdrawals per epoch", pl.col("withdrawals_count")),
}
"""The title of each chart, and its value per epoch."""


NO_DATA = "no data available for the requested chart"


def draw_chart(view: DatasetView, name: str) -> bytes:
    """Return the chart *name* as PNG, or raise RequestRefused if it is unknown or has no data."""
    from PIL import Image, ImageDraw

    if name not in CHARTS:
        raise RequestRefused(NO_DATA)
    view.table_cache.require("epochs")
    title, value = CHARTS[name]
    epochs = view.dataset.scan("epochs").filter(pl.col("finalized")).sort("epoch")
    points = epochs.select("epoch", value=value.cast(pl.Float64)).drop_nulls().collect()
    if points.is_empty():
        raise RequestRefused(NO_DATA)
    first, last = points["epoch"][0], points["epoch"][-1]
    inner_width = WIDTH - 2 * MARGIN
    # The picture shows one point per pixel column.
    column = (pl.col("epoch") - first) * (inner_width - 1) // max(last - first, 1)
    line = points.group_by(x=column, maintain_order=True).agg(pl.col("value").mean())
    low, high = points["value"].min(), points["value"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    spread = high - low or 1.0
    picture = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(picture)
    top, bottom = MARGIN, HEIGHT - MARGIN
    pen.rectangle((MARGIN, top, WIDTH - MARGIN, bottom), outline=TEXT_COLOR)
    path = [(MARGIN + x, bottom - (v - low) / spread * (bottom - top)) for x, v in line.rows()]
    pen.line(path if len(path) > 1 else path * 2, fill=LINE_COLOR, width=2)
    simulated = ", simulated" if view.dataset.meta.get("simulated") else ""
    pen.text((MARGIN, MARGIN // 3), title + simulated, fill=TEXT_COLOR)
    pen.text((MARGIN + 4, top + 2), f"{high:,.6g}", fill=TEXT_COLOR)
    pen.text((MARGIN + 4, bottom - 14), f"{low:,.6g}", fill=TEXT_COLOR)
    pen.text((MARGIN, bottom + 6), f"epoch {first} to {last}", fill=TEXT_COLOR)
    buffer = BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()
