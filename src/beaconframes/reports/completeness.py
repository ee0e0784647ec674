"""Which inputs each number of a report needs, and how a number without one of them is marked.

`NUMBERS` and `TABLES` are the one declaration. Page, text, JSON, warning and exit code read the
frame ``incomplete``, which follows from it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.active_periods import NATURAL, REASON
from beaconframes.errors import MissingRows, find_caller_level
from beaconframes.reports.formats import show_name, show_text

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs

Mark = Literal["unknown", "incomplete", "at least"]
Needs = dict[str, Mark]
"""What a number is without each input: ``unknown`` if it cannot be computed, ``at least`` if it
would not be lower, ``incomplete`` if it would be another one."""

_ORDER: tuple[Mark, ...] = ("unknown", "incomplete", "at least")
"""Of several marks, the first one counts."""

_INCOME: Needs = {"income": "unknown", "stats": "unknown"}
_RATES: Needs = {**_INCOME, "balances": "unknown"}
_BLOCKS: Needs = {"blocks": "incomplete"}
_PAID: Needs = {**_INCOME, **_BLOCKS}
_YIELD: Needs = {**_RATES, **_BLOCKS}
_PROPOSALS: Needs = {"proposals": "unknown"}
_LOSSES: Needs = {**_YIELD, "proposals": "at least", "index": "incomplete"}
_CAUSES: Needs = {**_LOSSES, "network": "incomplete"}
_WITHDRAWALS: Needs = {"withdrawals": "unknown", "stats": "unknown"}

_ANSWER: dict[str, Needs] = {
    "consensus_income_gwei": _INCOME,
    "execution_income_wei": _PAID,
    "net_income_wei": _PAID,
    "income_value": _PAID,
    "relay_payments_wei": {"blocks": "unknown"},
    "blocks": {"blocks": "unknown"},
    "withdrawals_gwei": _WITHDRAWALS,
    "apr_on_32_eth": _YIELD,
    "apr_on_effective": _YIELD,
    "apr_as_index": _YIELD,
    "cl_apr_on_effective": _RATES,
    "index_apr": {**_RATES, "index": "unknown"},
    "difference_bp": {**_YIELD, "index": "unknown"},
    "effectiveness": _INCOME,
    "included_rate": _INCOME,
    "network_effectiveness": {**_INCOME, "network": "unknown"},
    "lost_gwei": _LOSSES,
    "avoidable_gwei": _CAUSES,
    "unavoidable_gwei": _CAUSES,
    "unknown_gwei": _CAUSES,
}
NUMBERS: dict[str, Needs] = {
    **_ANSWER,
    "votes": _INCOME,
    "votes_missed": _INCOME,
    "sync_rate": _INCOME,
    # With daily statistics, the blocks are the proposals that were not missed.
    "proposed": {**_BLOCKS, **_PROPOSALS},
    "missed": _PROPOSALS,
    "orphaned": _PROPOSALS,
    "withdrawals_value": _WITHDRAWALS,
}
"""The numbers of the answer and of the tables in `_WITH_NUMBERS`, by their column."""
_WITH_NUMBERS = ("summary", "validators", "days", "income", "value", "years")

_FIGURES: Needs = dict.fromkeys((*_CAUSES, "validators"), "incomplete")
_RATED: Needs = {**_YIELD, "index": "incomplete"}
_CHANCE: Needs = {"index": "unknown", "balances": "unknown"}
_LUCK: Needs = {**_CHANCE, **_BLOCKS, **_PROPOSALS, "stats": "unknown"}
_SEATS: Needs = {**_CHANCE, "committees": "incomplete", "next_committees": "incomplete"}
_CHECKED: Needs = {**_RATES, "withdrawals": "unknown", "deposits": "incomplete"}
TABLES: dict[str, Needs] = {
    "days": _PAID,
    "income": _PAID,
    "value": _PAID,
    "years": _PAID,
    "rates": _RATED,
    "rate": _RATED,
    "effectiveness": {**_INCOME, "network": "incomplete"},
    "network": {**_INCOME, "network": "unknown"},
    "balances": {"balances": "unknown", "stats": "unknown"},
    "proposals": {**_FIGURES, **_PROPOSALS},
    "luck": _LUCK,
    "group_luck": _LUCK,
    "sync_luck": _SEATS,
    "group_sync_luck": _SEATS,
    "sync": _INCOME,
    "sync_epochs": _INCOME,
    "withdrawals": {**_INCOME, **_WITHDRAWALS},
    "problems": {**_FIGURES, "attestations": "incomplete", "slots": "incomplete"},
    "validators": {"validators": "incomplete"},
    "groups": _FIGURES,
    "group_verdict": _FIGURES,
    "comparison": {**_FIGURES, "index": "unknown", "proposals": "unknown"},
    "upcoming": {"committees": "incomplete", "next_committees": "at least", "duties": "incomplete"},
    "queue": {"queue": "unknown"},
    "missed_rewards": {"missed_rewards": "unknown"},
    "reconciliation": _CHECKED,
    "unexplained": _CHECKED,
}
"""The tables and charts, whose rows need inputs."""

_MOST_NAMED = 3
_LOSS_SUMS = ("lost", "avoidable", "unavoidable", "unknown")
_SCHEMA = dict.fromkeys(("frame", "column", "mark", "without"), pl.String)


def find_mark(inputs: Inputs, needs: Needs) -> tuple[Mark | None, list[str]]:
    """Return the mark of what *needs* inputs, and the inputs that are not complete."""
    found: dict[str, Mark] = {}
    for name, mark in needs.items():
        defect = inputs.find_defect(name)
        if defect == "gaps" and mark == "unknown":
            found[name] = "incomplete"
        elif defect and not (defect == "absent" and mark == "incomplete"):
            # Without what a source never has, numbers have another basis, which is stated.
            found[name] = mark
    marks = set(found.values())
    return next((mark for mark in _ORDER if mark in marks), None), list(found)


def hide_unknown(inputs: Inputs, frames: Frames) -> Frames:
    """Return the frames of a part with null for each number that is unknown: never with 0."""
    return {
        name: frame.with_columns(
            pl.lit(None, frame.schema[column]).alias(column)
            for column in frame.columns
            if name in _WITH_NUMBERS
            and column in NUMBERS
            and find_mark(inputs, NUMBERS[column])[0] == "unknown"
        )
        for name, frame in frames.items()
    }


def build_marks(inputs: Inputs, frames: Frames) -> Frames:
    """Return the numbers and tables that are not complete, each with its mark and the inputs.

    Sums of losses are lower bounds if some costs are unknown.
    """
    needs: list[tuple[str, str | None, Needs]] = [
        (name, None, table) for name, table in TABLES.items()
    ]
    for name in _WITH_NUMBERS:
        columns = frames[name].columns if name in frames else []
        if name == "summary":
            # The answer states what is unknown, also where there is no column.
            columns = [*_ANSWER]
        needs += [(name, column, NUMBERS[column]) for column in columns if column in NUMBERS]
    rows: list[tuple[str, str | None, str, str]] = []
    for frame, column, need in needs:
        mark, incomplete = find_mark(inputs, need)
        if mark is not None and (column != "income_value" or inputs.prices is not None):
            without = ", ".join(dict.fromkeys(inputs.items[name].loader for name in incomplete))
            rows.append((frame, column, mark, without))
    answer, marked = frames["summary"].row(0, named=True), {row[:2] for row in rows}
    if answer.get("cost_unknown") and answer.get("lost_gwei") is not None:
        sums = [("summary", f"{name}_gwei") for name in _LOSS_SUMS]
        rows += [(*number, "at least", "") for number in sums if number not in marked]
    return {"incomplete": pl.DataFrame(rows, _SCHEMA, orient="row")}


def read_marks(frames: Frames, frame: str) -> dict[str | None, str]:
    """Return the marks of a frame by column; those of its rows have no column."""
    rows = frames["incomplete"].filter(pl.col("frame") == frame)
    return dict(rows.select("column", "mark").iter_rows())


def read_answer(frames: Frames) -> dict[str, Any]:
    """Return the answer; numbers that are unknown are None, also those without a column."""
    marks = read_marks(frames, "summary")
    unknown = {name: None for name, mark in marks.items() if name and mark == "unknown"}
    return unknown | frames["summary"].row(0, named=True)


def show_marked(text: str, mark: str | None) -> str:
    """Return the text of a number with its mark."""
    if text == "unknown" or mark is None or mark == "unknown":
        return text
    return f"at least {text}" if mark == "at least" else f"{text} ({mark})"


def describe_marks(frames: Frames, *names: str, with_columns: bool = True) -> list[str]:
    """Return a sentence for each mark and set of inputs, about what frames show.

    A chart does not show all columns: its marks are those of the rows.
    """
    rows = frames["incomplete"].filter(pl.col("frame").is_in(names), pl.col("without") != "")
    if not with_columns:
        rows = rows.filter(pl.col("column").is_null())
    found = []
    for (mark, without), part in rows.group_by("mark", "without", maintain_order=True):
        columns = part["column"].unique(maintain_order=True)
        shown = columns.str.strip_suffix("_gwei").str.strip_suffix("_wei")
        whose = f": {', '.join(map(show_name, shown))}" if columns.null_count() == 0 else ""
        title = "At least this" if mark == "at least" else str(mark).capitalize()
        found.append(f"{title} without {without}{whose}.")
    return found


def list_failures(frames: Frames) -> list[str]:
    """Return the loads that failed with their reasons, and those with missing rows."""
    inputs = frames["inputs"]
    failed = inputs.filter(pl.col("state") == "failed")
    reasons = failed.group_by("reason", maintain_order=True).agg("loader")
    found = [
        f"{_name_some(loaders)} failed: {show_text(reason)}"
        for reason, loaders in reasons.iter_rows()
    ]
    has_gaps = pl.col("input").is_in(select_gaps(frames)["input"].to_list())
    if loaders := inputs.filter(has_gaps, pl.col("state") != "failed")["loader"].to_list():
        found.append(f"{_name_some(loaders)}: rows are missing")
    return found


def _name_some(loaders: list[str]) -> str:
    more = f" and {len(loaders) - _MOST_NAMED} more" if len(loaders) > _MOST_NAMED else ""
    return f"{', '.join(loaders[:_MOST_NAMED])}{more}"


def select_gaps(frames: Frames) -> pl.DataFrame:
    """Return the missing rows that can exist."""
    return frames["missing"].filter(~pl.col(REASON).is_in(NATURAL))


def warn_if_incomplete(frames: Frames) -> None:
    """Warn if a load failed, or if rows are missing that can exist."""
    if not (failures := list_failures(frames)):
        return
    day = frames["summary"]["since"][0]
    warning = MissingRows(
        f"the report from {day:%Y-%m-%d} is incomplete: {'; '.join(failures)}",
        hint="Numbers without these rows are marked",
    )
    warning.missing = select_gaps(frames)
    warnings.warn(warning, stacklevel=find_caller_level())
