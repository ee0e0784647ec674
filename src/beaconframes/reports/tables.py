"""The tables of a report: their columns, and which rows are on the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.problem_totals import problem_totals
from beaconframes.analysis.state_problems import ADVICE
from beaconframes.analysis.upcoming_duties import upcoming_totals
from beaconframes.reports.formats import (
    show_cost,
    show_cost_unknown,
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
    show_short,
    show_signed,
    show_text,
    show_value,
    show_verdict,
    show_yes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from beaconframes.reports.input_frames import Frames


_MOST_PROBLEMS, _FIRST_PROBLEMS = 8, 3
_MOST_GROUPS, _FIRST_GROUPS = 8, 4
_MOST_UPCOMING, _FIRST_UPCOMING = 8, 5
"""Up to this many rows are listed; of more, the first few, below their number by kind."""
_MOST_VALIDATORS = 20
_IS_USUAL = pl.col("avoidable").eq_missing(other=False)
_IS_ADVICE = pl.col("kind").is_in(ADVICE)
_WIDE = ("detail", "reason", "method")
_SINGULAR = {
    "votes": "vote",
    "duties": "duty",
    "slots": "slot",
    "penalties": "penalty",
    "validators": "validator",
}
_ON_PHONES = ("validator_index", "group", "effectiveness", "lost_gwei")
"""The columns of the validators on a phone, which is too narrow for all."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how a value is shown."""

    name: str
    title: str
    form: Callable[[Any], str]
    is_number: bool = True
    needs: str = ""
    """A column without whose value there is nothing to show: a duty that a validator had."""
    unit: str = ""
    """The column with the unit of a value."""
    is_minor: bool = False
    """Whether a phone leaves it out."""

    @property
    def style(self) -> str:
        """Return the class of its cells."""
        if self.is_number:
            style = "n"
        elif self.form is show_label:
            style = "l"
        else:
            style = "t" if self.form is show_moment else "w" if self.name in _WIDE else ""
        return f"{style} minor".strip() if self.is_minor else style

    @property
    def head_style(self) -> str:
        """Return the class of its heading."""
        return " ".join(name for name in self.style.split() if name in ("n", "minor"))

    def hint(self, row: dict[str, Any]) -> str:
        """Return the whole text of a cell that is shortened."""
        if self.form is show_label:
            return show_hint(row[self.name])
        whole = show_text(row[self.name])
        return whole if self.form is show_short and whole != show_short(whole) else ""

    def show(self, row: dict[str, Any]) -> str:
        """Return the text of a cell."""
        if self.needs and row.get(self.needs, 0) is None:
            return ""
        text = self.form(row[self.name])
        if not text or row.get(self.unit) is None:
            return text
        unit = show_text(row[self.unit])
        return f"{text} {_SINGULAR.get(unit, unit) if row[self.name] == 1 else unit}"


_PROBLEMS = (
    Column("kind", "Problem", show_text, is_number=False),
    Column("validator_index", "Validator", show_index),
    Column("cost_gwei", "Cost (ETH)", show_cost),
    Column("avoidable", "Avoidable", show_yes, is_number=False),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
    Column("count", "Count", show_count, unit="count_unit"),
    Column("detail", "Detail", show_short, is_number=False),
)
_ADVICE = (
    Column("kind", "What", show_text, is_number=False),
    Column("validators", "Validators", show_count),
    Column("detail", "Detail", show_short, is_number=False),
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
    Column("count", "Number", show_count),
    Column("validators", "Validators", show_count),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
)
_VALIDATORS = tuple(
    replace(column, is_minor=column.name not in _ON_PHONES)
    for column in (
        Column("validator_index", "Validator", show_index),
        Column("name", "Name", show_label, is_number=False),
        Column("group", "Group", show_label, is_number=False),
        Column("status", "Status", show_name, is_number=False),
        Column("net_income_wei", "Income (ETH)", show_eth_wei, needs="votes_missed"),
        Column("apr_on_effective", "Yearly rate", show_percent, needs="votes_missed"),
        Column("effectiveness", "Effectiveness", show_percent, needs="votes_missed"),
        Column("votes_missed", "Votes missed", show_count),
        Column("missed", "Blocks missed", show_count),
        Column("sync_rate", "Sync signed", show_percent, needs="sync_rate"),
        Column("lost_gwei", "Lost (ETH)", show_eth),
    )
)
_GROUP_VERDICT = (
    Column("group", "Group", show_label, is_number=False),
    Column("validators", "Validators", show_count),
    Column("effectiveness", "Effectiveness", show_percent),
    Column("lost_per_validator_gwei", "Lost per validator (ETH)", show_eth),
    Column("verdict", "Verdict", show_verdict, is_number=False),
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
    "lost_gwei": ("lost, per validator of 32 ETH (ETH)", show_eth, show_eth_signed),
}
"""Measures of groups: their names on the page, and how values and differences are shown."""
_KINDS = (
    Column("kind", "Problem", show_text, is_number=False),
    Column("problems", "Number", show_count),
    Column("validators", "Validators", show_count),
    Column("lost_gwei", "Cost (ETH)", show_cost),
    Column("cost_unknown", "Of unknown cost", show_cost_unknown, is_minor=True),
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


_FIGURES = (
    Column("title", "Number", show_text, is_number=False),
    Column("text", "Value", show_text),
    Column("method", "What it is", show_text, is_number=False),
)


def list_tables(frames: Frames) -> dict[str, Any]:
    """Return the rows and columns of all tables, for the template."""
    return {
        **_list_problems(frames.get("problems", pl.DataFrame())),
        **_list_upcoming(frames),
        **_list_groups(frames),
        "group_verdict": rank_groups(frames).rows(named=True),
        "group_count": frames["group_verdict"].height if "group_verdict" in frames else 0,
        "group_verdict_columns": _GROUP_VERDICT,
        "figure_columns": _FIGURES,
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


def rank_groups(frames: Frames) -> pl.DataFrame:
    """Return the verdict on each group, or on the first few: those that are worse, or lost most."""
    if "group_verdict" not in frames:
        return pl.DataFrame()
    groups = frames["group_verdict"]
    if groups.height <= _MOST_GROUPS:
        return groups.sort(pl.col("verdict") != "worse", maintain_order=True, nulls_last=True)
    keys = [pl.col("verdict") == "worse", "lost_per_validator_gwei"]
    return groups.sort(keys, descending=True, maintain_order=True, nulls_last=True).head(
        _FIRST_GROUPS
    )


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
        empty: dict[str, Any] = {name: [] for name in ("problems", "kinds", "advice")}
        return {**empty, "usual": {"count": 0}, "has_problems": False}
    # Without a known cost, their sum is unknown, not 0.
    total = pl.when(pl.col("cost_gwei").count() > 0).then(pl.col("cost_gwei").sum())
    usual, advice = problems.filter(_IS_USUAL), problems.filter(_IS_ADVICE)
    shown = select_problems(problems)
    is_long = shown.height > _MOST_PROBLEMS
    most = _FIRST_PROBLEMS if is_long else None
    tables = {"problems": shown} | ({"kinds": _sum_kinds(shown)} if is_long else {})
    return {
        "has_problems": True,
        **_list_rows(tables, "problems", _PROBLEMS, "problem", most),
        **_list_rows(tables, "kinds", _KINDS, "kind"),
        "usual": {
            "count": usual.height,
            "cost_gwei": usual.select(total).item(),
            "cost_unknown": usual["cost_gwei"].null_count(),
        },
        "advice": _sum_advice(advice),
        "advice_columns": _ADVICE,
    }


def _sum_advice(advice: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row for each kind of advice, that about most validators first."""
    first, count = pl.first("detail"), pl.len()
    detail = pl.when(count > 1).then(pl.format("{} times, such as: {}", count, first))
    sums = (
        advice.sort("validators", descending=True, maintain_order=True)
        .group_by("kind")
        .agg(pl.sum("validators"), detail=detail.otherwise(first))
    )
    return sums.sort("validators", "kind", descending=[True, False]).rows(named=True)


def _sum_kinds(problems: pl.DataFrame) -> pl.DataFrame:
    """Return the problems by kind: of many, the list shows those of the highest known cost."""
    is_other = pl.col("kind") != "slashed"
    return problem_totals(problems).sort(is_other, maintain_order=True)


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
