"""The result of an analysis: filters of problems, an exit code for scripts, taxes of a ledger."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import click
import polars as pl

from beaconframes import analysis
from beaconframes.analysis.problems import COUNT_UNITS
from beaconframes.analysis.state_problems import ADVICE
from beaconframes.analysis.valuation import TaxTool  # noqa: TC001 - for get_type_hints
from beaconframes.cli import exit_codes
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_ETH = re.compile(r"[0-9]{1,9}(\.[0-9]*)?", re.ASCII)
"""Up to more than all ether; costs in gwei stay below 2^63."""


def parse_cost(option: str, text: str) -> int:
    """Return an amount in ETH as gwei, rounded up: costs are whole gwei."""
    if not _ETH.fullmatch(text):
        raise UsageError(f"{option} {text!r} is not an amount in ETH, such as 0.01")
    return math.ceil(Decimal(text) * 10**9)


def select_problems(
    rows: pl.DataFrame,
    *,
    kinds: Annotated[tuple[str, ...], "--kind", click.Choice([*COUNT_UNITS])] = (),
    min_cost: int | None = None,
    avoidable: bool = False,
) -> pl.DataFrame:
    """Return the problems or incidents that the filters select.

    Parameters
    ----------
    kinds
        Only this kind; repeat it for each.
    min_cost
        Only what cost at least this many ETH, or has a cost that is not known.
    avoidable
        Only what the operator could have avoided, as far as that is known.
    """
    if kinds:
        rows = rows.filter(pl.col("kind").is_in(kinds))
    if min_cost is not None:
        # What an unknown cost adds may be as much.
        unknown = pl.col("cost_unknown") > 0 if "cost_unknown" in rows.columns else False
        is_unknown = (pl.col("cost_gwei").is_null() | unknown) & ~pl.col("kind").is_in(ADVICE)
        rows = rows.filter((pl.col("cost_gwei") >= min_cost) | is_unknown)
    return rows.filter("avoidable") if avoidable else rows


def end_with_code(rows: pl.DataFrame) -> None:
    """End the command with its exit code if problems are left."""
    if not rows["kind"].is_in(ADVICE).all():
        click.get_current_context().exit(exit_codes.PROBLEMS_FOUND)


def convert_ledger(
    rows: pl.DataFrame,
    *,
    tool: TaxTool | None = None,
    yearly: bool = False,
    starts: str | None = None,
    price: str | None,
    tz: str,
) -> pl.DataFrame:
    """Return the rows of a tax tool, the totals of tax years, or the ledger itself.

    Parameters
    ----------
    tool
        Return the rows that this tax tool imports, instead of days and validators.
    yearly
        Return the totals of tax years.
    starts
        First day of the tax year, such as 04-06; the default is 01-01.
    """
    if tool is not None and yearly:
        raise UsageError("--tool and --yearly exclude each other", hint="Use one of them")
    if starts is not None and not yearly:
        raise UsageError("--starts needs --yearly", hint="Add --yearly")
    if tool is not None:
        return analysis.tax_rows(rows, tool, price=price, tz=tz)
    return analysis.yearly_totals(rows, starts=starts or "01-01") if yearly else rows


EXIT_CODE = click.Option(
    ["--exit-code"],
    is_flag=True,
    help=f"End with exit code {exit_codes.PROBLEMS_FOUND} if any problem is left; advice is none.",
)
STEPS: dict[str, Callable[..., pl.DataFrame]] = {
    "ledger": convert_ledger,
    "problems": select_problems,
    "incidents": select_problems,
}
"""What follows an analysis, with options of its own."""
