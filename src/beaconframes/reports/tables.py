"""The tables of a report: their columns, and which rows are on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.problem_totals import problem_totals
from beaconframes.analysis.state_problems import ADVICE
from beaconframes.analysis.upcoming_duties import upcoming_totals
from beaconframes.reports.formats import (
    show_cost,
    show_count,
    show_decimal,
    show_eth,
    show_eth_signed,
    show_eth_wei,
    show_hint,
    show_index,
    show_label,
    show_moment,
    show_name,
    show_percent,
    show_points,
    show_signed,
    show_text,
    show_value,
    show_yes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Frames = dict[str, pl.DataFrame]

_MOST_PROBLEMS, _MOST_ADVICE = 25, 10
_MOST_UPCOMING, _FIRST_UPCOMING = 25, 5
"""Up to this many rows are listed; of more, the first few, below their number by kind and day."""
_MOST_VALIDATORS = 100
_IS_USUAL = pl.col("avoidable").eq_missing(other=False)
_IS_ADVICE = pl.col("kind").is_in(ADVICE)
_WIDE = ("detail", "rows", "reason")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how a value is shown."""

    name: str
    title: str
    form: Callable[[Any], str]
    is_number: bool = True
    needs: str = ""
    """A column without whose value there is nothing to show: a duty that a validator had."""

    @property
    def style(self) -> str:
        """Return the class of its cells."""
        if self.is_number:
            return "n"
        if self.form is show_label:
            return "l"
        return "t" if self.form is show_moment else "w" if self.name in _WIDE else ""

    def hint(self, row: dict[str, Any]) -> str:
        """Return the whole text of a cell that is shortened."""
        return show_hint(row[self.name]) if self.form is show_label else ""

    def show(self, row: dict[str, Any]) -> str:
        """Return the text of a cell."""
        if self.needs and row.get(self.needs, 0) is None:
            return ""
        return self.form(row[self.name])


_PROBLEMS = (
    Column("kind", "Problem", show_text, is_number=False),
    Column("validator_index", "Validator", show_index),
    Column("cost_gwei", "Cost (ETH)", show_cost),
    Column("avoidable", "Avoidable", show_yes, is_number=False),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
    Column("count", "Count", show_count),
    Column("detail", "Detail", show_text, is_number=False),
    Column("rows", "Rows", show_text, is_number=False),
)
_ADVICE = (
    Column("kind", "What", show_text, is_number=False),
    Column("validators", "Validators", show_count),
    Column("detail", "Detail", show_text, is_number=False),
    Column("rows", "Rows", show_text, is_number=False),
)
_UPCOMING = (
    Column("kind", "What", show_text, is_number=False),
    Column("validator_index", "Validator", show_index),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
    Column("slot", "Slot", show_index),
)
_UPCOMING_TOTALS = (
    Column("kind", "What", show_text, is_number=False),
    Column("count", "Rows", show_count),
    Column("validators", "Validators", show_count),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
)
_VALIDATORS = (
    Column("validator_index", "Validator", show_index),
    Column("name", "Name", show_label, is_number=False),
    Column("group", "Group", show_label, is_number=False),
    Column("status", "Status", show_text, is_number=False),
    Column("balance_gwei", "Balance (ETH)", show_eth),
    Column("credentials", "Credentials", show_text, is_number=False),
    Column("net_income_wei", "Income (ETH)", show_eth_wei, needs="votes_missed"),
    Column("apr_on_effective", "Yearly rate", show_percent, needs="votes_missed"),
    Column("effectiveness", "Effectiveness", show_percent, needs="votes_missed"),
    Column("votes_missed", "Votes missed", show_count),
    Column("proposed", "Proposed", show_count),
    Column("missed", "Missed", show_count),
    Column("sync_rate", "Sync signed", show_percent, needs="sync_rate"),
    Column("lost_gwei", "Lost (ETH)", show_eth),
)
_GROUPS = (
    Column("measure", "Measure", show_name, is_number=False),
    Column("group", "Group", show_label, is_number=False),
    Column("validators", "Validators", show_count),
    Column("value", "Value", show_text),
    Column("low", "from", show_text),
    Column("high", "to", show_text),
    Column("others", "Others", show_text),
    Column("difference", "Difference", show_text),
    Column("difference_low", "from", show_text),
    Column("difference_high", "to", show_text),
    Column("differs", "More than chance", show_yes, is_number=False),
)
_MEASURES: dict[str, tuple[str, Callable[[Any], str], Callable[[Any], str]]] = {
    "apr_on_effective": ("yearly rate", show_percent, show_points),
    "effectiveness": ("effectiveness", show_percent, show_points),
    "sync_rate": ("sync duties signed", show_percent, show_points),
    "proposed": ("blocks proposed", show_percent, show_points),
    "votes_missed": ("votes missed, per validator", show_decimal, show_signed),
    "lost_gwei": ("lost, ETH per validator", show_eth, show_eth_signed),
}
"""Measures of groups: their names on the page, and how values and differences are shown."""
_KINDS = (
    Column("kind", "Problem", show_text, is_number=False),
    Column("problems", "Rows", show_count),
    Column("validators", "Validators", show_count),
    Column("lost_gwei", "Cost (ETH)", show_cost),
    Column("cost_unknown", "Rows of unknown cost", show_count),
)
_YEARS = (
    Column("year", "Year", show_index),
    Column("first_date", "From", show_moment, is_number=False),
    Column("last_date", "To", show_moment, is_number=False),
    Column("net_income_wei", "Income (ETH)", show_eth_wei),
    Column("income_value", "Value at receipt", show_value),
    Column("withdrawals_gwei", "Withdrawals (ETH)", show_eth),
    Column("withdrawals_value", "Value", show_value),
    Column("days_without_price", "Days without price", show_count),
)
_INPUTS = (
    Column("input", "Input", show_text, is_number=False),
    Column("loader", "Loader", show_text, is_number=False),
    Column("state", "State", show_text, is_number=False),
    Column("rows", "Rows", show_count),
    Column("gaps", "Gaps", show_count),
    Column("requests", "Requests", show_count),
    Column("reason", "Reason", show_text, is_number=False),
)


def list_tables(frames: Frames) -> dict[str, Any]:
    """Return the rows and columns of all tables, for the template."""
    return {
        **_list_problems(frames.get("problems", pl.DataFrame())),
        **_list_upcoming(frames),
        **_list_groups(frames),
        **_list_rows(frames, "inputs", _INPUTS, "input"),
        **_list_validators(frames),
        **_list_rows(frames, "years", _YEARS, "year"),
    }


def _list_rows(
    frames: Frames, name: str, columns: Sequence[Column], prefix: str, most: int | None = None
) -> dict[str, Any]:
    """Return the rows of a table for the template, their number, and the columns with text."""
    frame = frames.get(name, pl.DataFrame())
    rows = frame.head(most).rows(named=True) if most else frame.rows(named=True)
    known = [column for column in columns if column.name in frame.columns]
    return {
        name: rows,
        f"{prefix}_count": frame.height,
        f"{prefix}_columns": [column for column in known if any(map(column.show, rows))],
    }


def _list_upcoming(frames: Frames) -> dict[str, Any]:
    """Return what is coming up; of many rows, their number by kind and day, and the first few."""
    rows = frames.get("upcoming", pl.DataFrame())
    if rows.height <= _MOST_UPCOMING:
        totals, most = [], _MOST_UPCOMING
    else:
        totals, most = upcoming_totals(rows).rows(named=True), _FIRST_UPCOMING
    return {
        **_list_rows(frames, "upcoming", _UPCOMING, "upcoming", most),
        "upcoming_totals": totals,
        "upcoming_total_columns": _UPCOMING_TOTALS,
    }


def _list_groups(frames: Frames) -> dict[str, Any]:
    """Return the rows of groups, each with the unit of its measure."""
    rows = []
    for row in frames.get("groups", pl.DataFrame()).iter_rows(named=True):
        title, form, form_difference = _MEASURES[row["measure"]]
        shown = {
            name: (form_difference if name.startswith("difference") else form)(value)
            for name, value in row.items()
            if isinstance(value, float)
        }
        rows.append(row | {"measure": title} | shown)
    return {"groups": rows, "group_columns": _GROUPS}


def select_problems(problems: pl.DataFrame) -> pl.DataFrame:
    """Return the problems to look at: neither what is usual, nor advice."""
    return problems.filter(~_IS_USUAL, ~_IS_ADVICE)


def _list_problems(problems: pl.DataFrame) -> dict[str, Any]:
    """Return the problems to look at; late votes that are usual are only counted."""
    if problems.is_empty():
        return {"problems": [], "kinds": [], "usual": {"count": 0}, "advice": []}
    # Without a known cost, their sum is unknown, not 0.
    total = pl.when(pl.col("cost_gwei").count() > 0).then(pl.col("cost_gwei").sum())
    usual, advice = problems.filter(_IS_USUAL), problems.filter(_IS_ADVICE)
    shown = select_problems(problems)
    rows = shown.head(_MOST_PROBLEMS).rows(named=True)
    # The advice that is about most validators, not the one with the first name; each kind once
    # before others of the same kind, of which each withdrawal address may have one.
    advice = advice.sort("validators", "kind", descending=[True, False], maintain_order=True)
    advice = advice.sort(pl.int_range(pl.len()).over("kind") > 0, maintain_order=True)
    return {
        "problems": rows,
        "problem_count": shown.height,
        "problem_columns": [c for c in _PROBLEMS if any(c.show(row) for row in rows)],
        "kinds": _sum_kinds(shown) if shown.height > _MOST_PROBLEMS else [],
        "kind_columns": _KINDS,
        "usual": {
            "count": usual.height,
            "cost_gwei": usual.select(total).item(),
            "cost_unknown": usual["cost_gwei"].null_count(),
        },
        "advice": advice.head(_MOST_ADVICE).rows(named=True),
        "advice_count": advice.height,
        "advice_columns": _ADVICE,
    }


def _sum_kinds(problems: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the problems by kind: of many, the list shows those of the highest known cost."""
    is_other = pl.col("kind") != "slashed"
    return problem_totals(problems).sort(is_other, maintain_order=True).rows(named=True)


def _list_validators(frames: Frames) -> dict[str, Any]:
    """Return the validators that lost most, and the columns with a value."""
    frame = frames["validators"]
    if "lost_gwei" in frame.columns and frame.height > _MOST_VALIDATORS:
        frame = frame.sort(
            "lost_gwei", "validator_index", descending=[True, False], nulls_last=True
        )
    known = {name for name in frame.columns if frame[name].null_count() < frame.height}
    if "name" in known and frame["name"].drop_nulls().str.len_chars().sum() == 0:
        known.remove("name")
    return {
        "validators": frame.head(_MOST_VALIDATORS).rows(named=True),
        "validator_count": frame.height,
        "validator_columns": [column for column in _VALIDATORS if column.name in known],
    }
