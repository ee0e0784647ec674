"""How far to trust the report: whether balances reconcile, what was loaded, and from where."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes import analysis
from beaconframes.reports.input_frames import PartMissing

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs


def build_reconciliation(inputs: Inputs, frames: Frames) -> Frames:
    """Return whether the balances reconcile with income, deposits and withdrawals."""
    if not inputs.has_epochs:
        raise PartMissing("daily statistics have no income to compare with balances")
    income, balances, withdrawals = inputs.require("income", "balances", "withdrawals")
    changes = analysis.reconcile(
        balances,
        income,
        withdrawals=withdrawals,
        deposits=inputs.get("deposits"),
        validators=inputs.get("validators"),
        chain=inputs.chain,
    )
    unexplained = changes.filter(pl.col("unexplained_gwei") != 0)
    totals = analysis.reconciliation_totals(changes)
    return {"reconciliation": totals, "unexplained": unexplained}


def build_inputs(inputs: Inputs, frames: Frames) -> Frames:
    """Return the frames that were loaded or not, and their missing rows."""
    rows = [
        {
            "input": item.name,
            "loader": item.loader,
            "state": item.state,
            "rows": None if item.rows is None else item.rows.height,
            "gaps": 0 if item.missing is None else item.missing.height,
            "requests": item.requests,
            "reason": item.reason,
        }
        for item in inputs.items.values()
    ]
    gaps = [
        item.missing.with_columns(input=pl.lit(item.name))
        for item in inputs.items.values()
        if item.missing is not None
    ]
    empty = pl.DataFrame(schema={"input": pl.String, "reason": pl.String})
    missing = merge_gaps(pl.concat([empty, *gaps], how="diagonal_relaxed"))
    return {"inputs": pl.DataFrame(rows, infer_schema_length=None), "missing": missing}


def merge_gaps(gaps: pl.DataFrame) -> pl.DataFrame:
    """Join gaps that follow each other: some frames are loaded in several ranges of epochs."""
    if "first_epoch" not in gaps.columns:
        return gaps
    whose = [name for name in gaps.columns if name not in ("first_epoch", "last_epoch")]
    follows = pl.col("first_epoch") == pl.col("last_epoch").shift(1).over(whose) + 1
    gaps = gaps.sort(pl.col("input").rle_id(), *whose[1:], "first_epoch", nulls_last=True)
    run = (~follows.fill_null(value=False)).cum_sum().over(whose).alias("run")
    merged = gaps.group_by(*whose, run, maintain_order=True).agg(
        pl.first("first_epoch"), pl.last("last_epoch")
    )
    return merged.select(gaps.columns)


def build_facts(inputs: Inputs, frames: Frames) -> Frames:
    """Return where the rows come from."""
    explorer, chain = inputs.explorer, inputs.chain
    head, host = explorer.chain_head, explorer.read_quota().host
    simulated = explorer.about.get("simulated")
    facts = {
        # The folder of a dataset is named without its path.
        "source": Path(host).name if Path(host).is_absolute() else host,
        "service": explorer.about.get("service"),
        "chain": chain.name,
        "simulated": None if simulated is None else ("yes" if simulated else "no"),
        "detail": "every epoch" if inputs.has_epochs else "daily statistics",
        "note": inputs.note or None,
        "days": inputs.tz if inputs.has_epochs else "of the chain, from the hour of genesis",
        "first epoch": inputs.first,
        "last epoch": inputs.last,
        "head epoch": head.latest("epoch"),
        "finalized epoch": head.latest("epoch", finalized=True),
        "requests": sum(item.requests for item in inputs.items.values()),
        "made at": inputs.made_at.isoformat(timespec="seconds"),
        "beaconframes": version("beaconframes"),
        "polars": pl.__version__,
    }
    known = [(name, str(value)) for name, value in facts.items() if value is not None]
    return {"facts": pl.DataFrame(known, ["fact", "value"], orient="row")}
