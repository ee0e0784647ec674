"""Filters of ``analyse problems`` and ``analyse incidents``, and their exit code for scripts."""

from __future__ import annotations

import contextlib
import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import exit_codes
from beaconframes.cli.common_options import pop_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

NAMES = ("kinds", "min_cost", "avoidable", "exit_code")
"""The options of `build_filters`."""
_GWEI = 10**9
_MOST_ETH = 10**9
"""More than all ether; costs in gwei stay below 2^63."""


def build_filters() -> list[click.Option]:
    """Return the options that select problems, and the one for the exit code."""
    from beaconframes.analysis.problems import COUNT_UNITS

    return [
        click.Option(
            ["--kind", "kinds"],
            type=click.Choice(list(COUNT_UNITS)),
            multiple=True,
            help="Only this kind; repeat it for each.",
        ),
        click.Option(
            ["--min-cost"],
            callback=parse_cost,
            metavar="ETH",
            help="Only what cost at least this many ETH, or has a cost that is not known.",
        ),
        click.Option(
            ["--avoidable"],
            is_flag=True,
            help="Only what the operator could have avoided, as far as that is known.",
        ),
        click.Option(
            ["--exit-code"],
            is_flag=True,
            help=f"End with exit code {exit_codes.PROBLEMS_FOUND} if any problem is left; advice "
            "is none.",
        ),
    ]


def parse_cost(_context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return an amount in ETH as gwei, rounded up: costs are whole gwei."""
    if text is None:
        return None
    with contextlib.suppress(InvalidOperation):  # Also of a comparison with NaN.
        amount = Decimal(text)
        if 0 <= amount <= _MOST_ETH:
            return math.ceil(amount * _GWEI)
    raise click.BadParameter(f"{text!r} is not an amount in ETH, such as 0.01.", param=option)


def pop_filters(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the filters from *values*; empty for an analysis without them."""
    return pop_options(values, NAMES) if NAMES[0] in values else {}


def filter_rows(rows: pl.DataFrame, filters: Mapping[str, Any]) -> pl.DataFrame:
    """Return the problems or incidents that the filters select; all rows without filters."""
    import polars as pl

    from beaconframes.analysis.state_problems import ADVICE

    if not filters:
        return rows
    if filters["kinds"]:
        rows = rows.filter(pl.col("kind").is_in(filters["kinds"]))
    if filters["min_cost"] is not None:
        # What an unknown cost adds may be as much.
        unknown = pl.col("cost_unknown") > 0 if "cost_unknown" in rows.columns else False
        is_unknown = (pl.col("cost_gwei").is_null() | unknown) & ~pl.col("kind").is_in(ADVICE)
        rows = rows.filter((pl.col("cost_gwei") >= filters["min_cost"]) | is_unknown)
    if filters["avoidable"]:
        rows = rows.filter("avoidable")
    return rows


def end_with_code(rows: pl.DataFrame, filters: Mapping[str, Any]) -> None:
    """End the command with its exit code if problems are left, and if ``--exit-code`` is given."""
    from beaconframes.analysis.state_problems import ADVICE

    if filters.get("exit_code") and not rows["kind"].is_in(ADVICE).all():
        click.get_current_context().exit(exit_codes.PROBLEMS_FOUND)
