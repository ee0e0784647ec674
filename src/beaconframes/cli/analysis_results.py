"""The result of an analysis: filters of problems, an exit code for scripts, taxes of a ledger."""

from __future__ import annotations

import contextlib
import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, get_args

import click

from beaconframes.cli import exit_codes
from beaconframes.cli.common_options import pop_options
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

NAMES = ("kinds", "min_cost", "avoidable", "exit_code")
"""The options of `build_filters`."""
TAXES = ("tool", "yearly", "starts")
"""The options of `build_tax_options`."""
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


def build_tax_options() -> list[click.Option]:
    """Return the options that convert the days of a ledger."""
    from beaconframes.analysis.valuation import TaxTool

    return [
        click.Option(
            ["--tool"],
            type=click.Choice(get_args(TaxTool)),
            help="Return the rows that this tax tool imports, instead of days and validators.",
        ),
        click.Option(["--yearly"], is_flag=True, help="Return the totals of tax years."),
        click.Option(
            ["--starts"], help="First day of the tax year, such as 04-06; the default is 01-01."
        ),
    ]


def pop_taxes(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of taxes from *values*; empty for an analysis without them."""
    taxes = pop_options(values, TAXES) if TAXES[0] in values else {}
    if taxes and taxes["tool"] is not None and taxes["yearly"]:
        raise UsageError("--tool and --yearly exclude each other", hint="Use one of them")
    if taxes and taxes["starts"] is not None and not taxes["yearly"]:
        raise UsageError("--starts needs --yearly", hint="Add --yearly")
    return taxes


def convert_ledger(
    rows: pl.DataFrame, taxes: Mapping[str, Any], *, price: str | None, tz: str
) -> pl.DataFrame:
    """Return the rows of a tax tool, the totals of tax years, or the ledger itself."""
    from beaconframes import analysis

    if taxes["tool"] is not None:
        return analysis.tax_rows(rows, taxes["tool"], price=price, tz=tz)
    if taxes["yearly"]:
        return analysis.yearly_totals(rows, starts=taxes["starts"] or "01-01")
    return rows
