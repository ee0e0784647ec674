"""Charts of the local explorer: plain pictures of its own epochs."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.dataset import Dataset

WIDTH, HEIGHT, MARGIN = 800, 400, 48
INK, LINE, PAPER = "#222222", "#1f77b4", "white"

DRAWN = {
    "validators": ("Validators", pl.col("validators_count")),
    "staked_ether": ("Staked ether", pl.col("eligible_ether_gwei") / 1e9),
    "average_balance": ("Average balance, ETH", pl.col("average_validator_balance_gwei") / 1e9),
    "participation_rate": ("Participation rate", pl.col("global_participation_rate")),
    "blocks": ("Blocks proposed an epoch", pl.col("proposed_blocks")),
    "deposits": ("Deposits an epoch", pl.col("deposits_count")),
    "withdrawals": ("Withdrawals an epoch", pl.col("withdrawals_count")),
}
"""What can be drawn: the title, and what of an epoch."""


def draw(dataset: Dataset, name: str) -> bytes | None:
    """Return the chart *name* as a PNG, or None when there is none."""
    if name not in DRAWN or "epochs" not in dataset.tables():
        return None
    from PIL import Image, ImageDraw

    title, value = DRAWN[name]
    epochs = dataset.scan("epochs").filter(pl.col("finalized"))
    points = epochs.select("epoch", value=value.cast(pl.Float64)).drop_nulls().collect()
    if points.is_empty():
        return None
    first, last = points["epoch"][0], points["epoch"][-1]
    inside = WIDTH - 2 * MARGIN
    # One point for each column of the picture is all that it can show.
    column = (pl.col("epoch") - first) * (inside - 1) // max(last - first, 1)
    line = points.group_by(x=column, maintain_order=True).agg(pl.col("value").mean())
    low, high = points["value"].min(), points["value"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    spread = high - low or 1.0
    picture = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(picture)
    top, bottom = MARGIN, HEIGHT - MARGIN
    pen.rectangle((MARGIN, top, WIDTH - MARGIN, bottom), outline=INK)
    path = [(MARGIN + x, bottom - (v - low) / spread * (bottom - top)) for x, v in line.rows()]
    pen.line(path if len(path) > 1 else path * 2, fill=LINE, width=2)
    simulated = ", simulated" if dataset.meta.get("simulated") else ""
    pen.text((MARGIN, MARGIN // 3), title + simulated, fill=INK)
    pen.text((MARGIN + 4, top + 2), f"{high:,.6g}", fill=INK)
    pen.text((MARGIN + 4, bottom - 14), f"{low:,.6g}", fill=INK)
    pen.text((MARGIN, bottom + 6), f"epoch {first} to {last}", fill=INK)
    buffer = BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()
