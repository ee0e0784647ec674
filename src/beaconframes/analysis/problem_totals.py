"""Totals of problems: what was lost, and whether it could have been avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    return_table,
    sum_by,
)
from beaconframes.analysis.state_problems import ADVICE, PROBLEM_KEYS
from beaconframes.frames import collect
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrameT

_COLUMNS = ["kind", "validator_index", "validators", "cost_gwei", "avoidable"]
_LOST = ["lost_gwei", "avoidable_gwei", "unavoidable_gwei", "unknown_gwei"]


@show_elapsed
def problem_totals(problems: IntoFrameT, *, by: str | Sequence[str] = "kind") -> IntoFrameT:
    """Add up problems by kind or validator. One row per group, most costly first.

    Parameters
    ----------
    problems
        Frame of `problems`.
    by
        Group columns, such as ``"kind"`` or ``"validator_index"``; ``()`` for one row.

    Returns
    -------
    The same kind of frame
        The columns of *by*, the number of ``problems``, and the number of ``validators``: those
        that are named, or more if one row is about more. Then ``lost_gwei``, of which
        ``avoidable_gwei``, ``unavoidable_gwei`` and ``unknown_gwei``, where it is unknown which;
        null if no cost is known. ``cost_unknown`` is the number of problems without a cost; advice
        never has one. By validator, rows about several validators are left out. This computes
        eagerly.
    """
    groups = list_columns(by, {"problems", "validators", *_LOST, "cost_unknown"})
    source = open_frame(
        problems, list(dict.fromkeys([*_COLUMNS, *groups])), loader="analysis.problems"
    )
    check_distinct(problems, PROBLEM_KEYS, groups, loader="analysis.problems")
    rows = collect(source)
    if "validator_index" in groups:
        rows = rows.drop_nulls("validator_index")
    cost, avoidable = pl.col("cost_gwei"), pl.col("avoidable")
    # A row about several validators names none.
    several = pl.col("validators").filter(pl.col("validator_index").is_null()).max().fill_null(0)
    named = pl.col("validator_index").drop_nulls().n_unique()
    is_advice = pl.col("kind").is_in(ADVICE)
    # Advice alone means that nothing was lost; its own kinds have no cost.
    has_no_loss = pl.len() == 0 if "kind" in groups else is_advice.all()
    is_known = cost.is_not_null().any() | has_no_loss
    parts = {
        "lost_gwei": pl.lit(value=True),
        "avoidable_gwei": avoidable,
        "unavoidable_gwei": ~avoidable,
        "unknown_gwei": avoidable.is_null(),
    }
    totals = {
        "problems": pl.len().cast(pl.Int64),
        "validators": pl.max_horizontal(named, several).cast(pl.Int64),
        **{n: pl.when(is_known).then(cost.filter(part).sum()) for n, part in parts.items()},
        "cost_unknown": (cost.is_null() & ~is_advice).sum().cast(pl.Int64),
    }
    descending = [True, *[False] * len(groups)]
    result = sum_by(rows, groups, **totals)
    result = result.sort("lost_gwei", *groups, descending=descending, nulls_last=True)
    return return_table(result, source, problems)
