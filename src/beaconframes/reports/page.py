"""The page of a report: its frames in a template, with everything in one file."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.problem_totals import problem_totals
from beaconframes.reports.pictures import build_pictures
from beaconframes.reports.renderers import render_plotly, render_svg
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2 import Environment

Frames = dict[str, pl.DataFrame]

_MOST_PROBLEMS = 25
_MOST_UPCOMING = 25
_MOST_VALIDATORS = 100
_LONGEST_TEXT = 120
_WIDE = ("rows", "reason")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how a value is shown."""

    name: str
    title: str
    form: Callable[[Any], str]
    is_number: bool = True

    @property
    def style(self) -> str:
        """Return the class of its cells."""
        if self.is_number:
            return "n"
        return "t" if self.form is show_moment else "w" if self.name in _WIDE else ""

    def show(self, row: dict[str, Any]) -> str:
        """Return the text of a cell."""
        return self.form(row[self.name])


def show_count(value: Any) -> str:
    """Return a whole number with separators."""
    return "" if value is None else f"{value:,}"


def show_index(value: Any) -> str:
    """Return a number that identifies: without separators."""
    return "" if value is None else str(value)


def show_eth(gwei: Any) -> str:
    """Return an amount of gwei in ETH, with five decimals."""
    return "unknown" if gwei is None else _show_ratio(int(gwei), 10**9)


def show_cost(gwei: Any) -> str:
    """Return a cost in ETH; nothing for what needs attention but cost nothing."""
    return "" if gwei == 0 else show_eth(gwei)


def show_eth_wei(wei: Any) -> str:
    """Return an amount of wei in ETH, with five decimals."""
    return "unknown" if wei is None else _show_ratio(int(wei), 10**18)


def _show_ratio(amount: int, unit: int) -> str:
    """Return *amount* in *unit*, rounded exactly: a float has too few digits for large sums."""
    steps = (2 * abs(amount) * 10**5 + unit) // (2 * unit)
    if amount and not steps:
        return "<0.00001" if amount > 0 else "\u2212<0.00001"
    sign = "\u2212" if amount < 0 and steps else ""
    return f"{sign}{steps // 10**5:,}.{steps % 10**5:05d}"


def show_percent(share: Any) -> str:
    """Return a share in percent."""
    return "unknown" if share is None else f"{100 * share:.2f} %"


def show_decimal(value: Any, places: int = 1) -> str:
    """Return a number with some decimals."""
    return "unknown" if value is None else f"{value:,.{places}f}"


def show_signed(value: Any) -> str:
    """Return a difference, with its sign."""
    return "unknown" if value is None else f"{value:+,.1f}".replace("-", "\u2212")


def show_value(amount: Any) -> str:
    """Return an amount of a currency, with two decimals, rounded half up."""
    if amount is None:
        return "unknown"
    rounded = amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{rounded:,.2f}".replace("-", "\u2212")


def show_points(share: Any) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * share:+,.2f} points".replace("-", "\u2212")


def show_moment(value: Any) -> str:
    """Return a time to the minute, in UTC."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return value.isoformat() if isinstance(value, date) else ""


def show_text(value: Any) -> str:
    """Return text of any origin: control and invisible characters are shown escaped."""
    return "" if value is None else visible(value, _LONGEST_TEXT)


def show_name(value: Any) -> str:
    """Return the name of a column as words."""
    return show_text(value).replace("_", " ")


def show_yes(value: Any) -> str:
    """Return yes, no, or nothing."""
    return {True: "yes", False: "no"}.get(value, "")


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
_UPCOMING = (
    Column("kind", "What", show_text, is_number=False),
    Column("validator_index", "Validator", show_index),
    Column("since", "From (UTC)", show_moment, is_number=False),
    Column("until", "To (UTC)", show_moment, is_number=False),
    Column("slot", "Slot", show_index),
)
_VALIDATORS = (
    Column("validator_index", "Validator", show_index),
    Column("name", "Name", show_text, is_number=False),
    Column("group", "Group", show_text, is_number=False),
    Column("status", "Status", show_text, is_number=False),
    Column("balance_gwei", "Balance (ETH)", show_eth),
    Column("credentials", "Credentials", show_text, is_number=False),
    Column("net_income_wei", "Income (ETH)", show_eth_wei),
    Column("apr_on_effective", "Yearly rate", show_percent),
    Column("effectiveness", "Effectiveness", show_percent),
    Column("votes_missed", "Votes missed", show_count),
    Column("proposed", "Proposed", show_count),
    Column("missed", "Missed", show_count),
    Column("sync_rate", "Sync signed", show_percent),
    Column("lost_gwei", "Lost (ETH)", show_eth),
)
_GROUPS = (
    Column("measure", "Measure", show_name, is_number=False),
    Column("group", "Group", show_text, is_number=False),
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
    "lost_gwei": ("lost, ETH per validator", show_eth, show_eth),
}
"""Measures of groups: their names on the page, and how values and differences are shown."""
_KINDS = (
    Column("kind", "Problem", show_text, is_number=False),
    Column("problems", "Rows", show_count),
    Column("validators", "Validators", show_count),
    Column("lost_gwei", "Cost (ETH)", show_eth),
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
_FILTERS = {
    "count": show_count,
    "eth": show_eth,
    "eth_wei": show_eth_wei,
    "percent": show_percent,
    "decimal": show_decimal,
    "signed": show_signed,
    "points": show_points,
    "moment": show_moment,
    "value": show_value,
    "text": show_text,
}


def render_page(frames: Frames, left_out: dict[str, str], *, interactive: bool) -> str:
    """Return the page: all text is escaped, and a policy forbids other scripts and requests."""
    pictures = build_pictures(frames, interactive=interactive)
    draw = render_plotly if interactive else render_svg
    script = _read("table_sort.js")
    summary = frames["summary"]
    answer = summary.row(0, named=True)
    problems = frames.get("problems", pl.DataFrame())
    facts = dict(frames["facts"].iter_rows())
    context: dict[str, Any] = {
        "title": f"Report on {show_count(answer['validators'])} validator"
        + ("s" if answer["validators"] != 1 else ""),
        "answer": answer,
        "facts": facts,
        "facts_listed": [
            (show_text(name).capitalize(), show_text(value))
            for name, value in frames["facts"].iter_rows()
        ],
        "pictures": pictures,
        "drawn": {name: draw(picture) for name, picture in pictures.items()},
        "library": _read_plotly() if interactive else "",
        "css": _read("report.css"),
        "script": script,
        "policy": _build_policy(script, interactive=interactive),
        "left_out": {name: show_text(reason) for name, reason in left_out.items()},
        "is_daily": facts.get("detail") == "daily statistics",
        "luck": _get_row(frames, "luck"),
        "queue": _get_row(frames, "queue"),
        "reconciliation": _get_row(frames, "reconciliation"),
        "gap_count": frames["missing"].height,
        **_list_problems(problems),
        **_list_rows(frames, "upcoming", _UPCOMING, "upcoming", _MOST_UPCOMING),
        **_list_groups(frames),
        **_list_rows(frames, "inputs", _INPUTS, "input"),
        **_list_validators(frames),
        **_list_rows(frames, "years", _YEARS, "year"),
    }
    return _load_environment().get_template("report.html.j2").render(context)


def list_answer(frames: Frames) -> list[str]:
    """Return the answer as lines of text."""
    answer = frames["summary"].row(0, named=True)
    since, until = (show_moment(answer[name]) for name in ("since", "until"))
    active, count = (show_count(answer[name]) for name in ("active", "validators"))
    lines = [f"{active} of {count} validators active, {since} to {until} UTC"]
    epochs = answer["last_epoch"] - answer["first_epoch"] + 1
    if answer.get("income_epochs", epochs) < epochs:
        known = show_count(answer["income_epochs"])
        lines.append(f"  income covers {known} of {show_count(epochs)} epochs")
    for name, title, form, unit in (
        ("net_income_wei", "net income", show_eth_wei, " ETH"),
        ("consensus_income_gwei", "consensus layer", show_eth, " ETH"),
        ("execution_income_wei", "execution layer", show_eth_wei, " ETH"),
        ("income_value", "value at receipt", show_value, f" {answer.get('currency', '')}".upper()),
        ("apr_on_effective", "yearly rate", show_percent, ""),
        ("index_apr", "yield index", show_percent, ""),
        ("effectiveness", "effectiveness", show_percent, ""),
        ("network_effectiveness", "network", show_percent, ""),
        ("lost_gwei", "lost", show_eth, " ETH"),
        ("avoidable_gwei", "avoidable", show_eth, " ETH"),
    ):
        if name in answer:
            text = form(answer[name])
            note = ""
            if name == "income_value" and answer["days_without_price"]:
                note = f", {answer['days_without_price']} days without a price"
            lines.append(f"  {title:17} {text}{'' if text == 'unknown' else unit}{note}")
    return lines


def _get_row(frames: Frames, name: str) -> dict[str, Any] | None:
    frame = frames.get(name)
    return frame.row(0, named=True) if frame is not None and frame.height else None


def _list_rows(
    frames: Frames, name: str, columns: Sequence[Column], prefix: str, most: int | None = None
) -> dict[str, Any]:
    """Return the rows of a table for the template, their number, and the columns that exist."""
    frame = frames.get(name, pl.DataFrame())
    return {
        name: frame.head(most).rows(named=True) if most else frame.rows(named=True),
        f"{prefix}_count": frame.height,
        f"{prefix}_columns": [column for column in columns if column.name in frame.columns],
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


def _list_problems(problems: pl.DataFrame) -> dict[str, Any]:
    """Return the problems to look at; late votes that are usual are only counted."""
    if problems.is_empty():
        return {"problems": [], "kinds": [], "usual": {"count": 0}}
    is_usual = pl.col("avoidable").eq_missing(other=False)
    shown, usual = problems.filter(~is_usual), problems.filter(is_usual)
    rows = shown.head(_MOST_PROBLEMS).rows(named=True)
    return {
        "problems": rows,
        "problem_count": shown.height,
        "problem_columns": [c for c in _PROBLEMS if any(c.show(row) for row in rows)],
        "kinds": _sum_kinds(shown) if shown.height > _MOST_PROBLEMS else [],
        "kind_columns": _KINDS,
        "usual": {"count": usual.height, "cost_gwei": usual["cost_gwei"].sum()},
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


def _build_policy(script: str, *, interactive: bool) -> str:
    """Return the content security policy: no request, and no script but our own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = "'unsafe-inline'" if interactive else f"'sha256-{digest}'"
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {scripts}"


def _read_plotly() -> str:
    from plotly.offline import get_plotlyjs

    library: str = get_plotlyjs()
    return library


@cache
def _load_environment() -> Environment:
    """Return the environment of the templates; every value is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("beaconframes.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


@cache
def _read(name: str) -> str:
    from importlib.resources import files

    return (files("beaconframes.reports") / "templates" / name).read_text(encoding="utf-8").strip()
