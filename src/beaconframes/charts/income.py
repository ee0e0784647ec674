"""Chart of income over time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.execution_income import FEES_ONLY
from beaconframes.analysis.income import income as sum_income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.charts import series, validator_lines
from beaconframes.charts.index_income import build_expected_income
from beaconframes.charts.model import Area, Axis, Bars, Chart, Layer, Line
from beaconframes.charts.series import Unit
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Floats, Positions

Every = Literal["epoch", "day", "week", "month"]
By = Literal["total", "component", "validator"]

_PARTS = {
    "consensus_income_gwei": ("Consensus layer", colours.BLUE),
    "attestation_reward_gwei": ("Attestations", colours.BLUE),
    "proposal_reward_gwei": ("Block proposals", colours.AMBER),
    "sync_committee_reward_gwei": ("Sync committee", colours.CYAN),
    "slashing_reward_gwei": ("Slashing rewards", colours.GREEN),
    "execution_income_wei": ("Execution income", colours.PURPLE),
    "attestation_penalty_gwei": ("Attestation penalties", colours.RED),
    "finality_delay_penalty_gwei": ("Finality delay penalties", colours.BROWN),
    "sync_committee_penalty_gwei": ("Sync committee penalties", colours.ORANGE),
    "slashing_penalty_gwei": ("Slashing penalties", colours.SLATE),
}
CONSENSUS_ONLY = "consensus layer only, because priority fees are missing"
# Part, base and height.
_Stack = list[tuple[str, "Floats", "Floats"]]


def income(
    frame: IntoFrame,
    *,
    blocks: IntoFrame | None = None,
    every: Every = "day",
    unit: Unit | None = None,
    by: By = "total",
    cumulative: bool = False,
    yield_index: IntoFrame | None = None,
    balances: IntoFrame | None = None,
) -> Chart:
    """Draw an income history: bars for days, weeks or months (UTC), a line for epochs.

    *frame* is the result of ``bf.load_income_history(...)``. Net income is rewards minus penalties
    on the consensus layer plus execution income, summed exactly; only the drawn heights are floats.
    With *by* ``"component"``, rewards are stacked, and penalties have a panel below with their own
    scale, {second_panel}. With ``"validator"``, each validator has a line; of more than 50,
    the median, the band of 80 % of them, and the extremes are drawn. Bars are hatched and markers
    hollow where the frame does not have a whole day, week or month of epochs, also where the chain
    began or the newest epoch is within it.

    With *blocks*, the result of ``bf.load_produced_blocks(...)``, execution income is what the
    proposers received; without it, priority fees, relay payments not included.

    *cumulative* draws the sum since the first row instead, as lines or stacked steps. Where epochs
    are missing, nothing is drawn and nothing is added.

    With *yield_index*, the result of ``bf.load_yield_index(...)``, a dashed line has the income of
    as many validators at the rate of the index: with the effective *balances* of
    ``bf.load_balance_history(...)``, or 32 ETH each. It stops where the index has no day.

    *unit* is that of the axes; by default ETH, or gwei for amounts below 0.001 ETH.

    *kwargs* go to ``Axes.bar`` (bars), ``Axes.plot`` (lines) or ``Axes.fill_between`` (components
    as steps).
    """
    _check_arguments(unit, by, every, yield_index, balances)
    rows, is_known = sum_periods(frame, blocks, every, by)
    chosen, unit = unit, unit or _choose_unit(rows, cumulative=cumulative)
    bars = every != "epoch" and not cumulative
    style = "hollow" if by == "validator" else "hatched"
    incomplete = "" if cumulative or rows["complete"].all() else f", {style} where incomplete"
    x = Axis(
        f"{series.TIME_NAMES[every]} (UTC{incomplete})", every, series.to_datetime64(rows["time"])
    )
    quantity = "Net income" if is_known else "Consensus income"
    if by == "component":
        quantity = "Income"
    suffix = " and validator" if by == "validator" else ""
    span = f"per {every}{suffix}"
    if cumulative and not rows.is_empty():
        span = f"since {series.format_day(rows['time'].min())}"
    y = Axis(f"{quantity} {span} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    note = describe_execution_income(is_known=is_known, has_blocks=blocks is not None)
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a time and every amount")
        return Chart(x, y, empty_note=f"No income to draw: {reason}")
    is_single = rows["time"].n_unique() == 1 and not (bars and by != "validator")
    # A single point needs a note; a bar does not, and the note would cover it.
    single_note = f"One {every} only" if is_single else None
    finding = _state_result(rows, every, chosen or _choose_unit(rows, cumulative=True), note)
    chart = Chart(x, y, single_note=single_note, note=note, finding=finding)
    number = pl.col("first_epoch") if every == "epoch" else series.number_units(every)
    rows = rows.with_columns(number=number)
    if cumulative:
        rows = _accumulate(rows)
    if by == "component":
        # Its parts add up to the consensus income.
        rows = rows.drop("consensus_income_gwei")
        penalty_unit = chosen or _choose_penalty_unit(rows)
        return _add_components(chart, rows, every, unit, penalty_unit, bars=bars)
    rows = rows.with_columns(y=pl.Series(series.convert_amounts(rows["net_income_wei"], unit)))
    if by == "validator":
        lines = validator_lines.build_layers(rows, marked=every != "epoch").add_to(chart)
        # The median of many validators may be complete where one of them is not.
        if any(isinstance(line, Line) and line.has_hollow_markers for line in lines.layers):
            return lines
        return replace(lines, x=replace(x, label=x.label.replace(incomplete, "")))
    expected: tuple[Line, ...] = ()
    if yield_index is not None:
        rate = "apr" if is_known else "cl_apr"
        line = build_expected_income(
            frame, yield_index, balances, rows, every, unit, rate=rate, cumulative=cumulative
        )
        expected = (line,)
        chart = replace(chart, legend=(quantity, line.name))
    net: Bars | Line
    if bars:
        net = Bars(
            series.to_datetime64(rows["time"]),
            series.to_floats(rows["y"]),
            quantity,
            width=_compute_bar_widths(rows, every),
            incomplete=_find_incomplete(rows),
        )
    else:
        net = validator_lines.build_line(rows, quantity, marked=every != "epoch")
    return replace(chart, layers=(net, *expected))


def _state_result(rows: pl.DataFrame, every: Every, unit: Unit, note: str) -> str:
    """Return what validators earned in the periods of the chart, with what is missing of it."""
    amount = float(series.convert_amounts(rows["net_income_wei"], unit).sum())
    digits = max(0, 2 - math.floor(math.log10(abs(amount) or 1)))
    periods = rows["time"].n_unique()
    span = f"{periods:,} {every}{'' if periods == 1 else 's'}"
    if not rows["complete"].all():
        span += ", some incomplete"
    verb = "lost" if amount < 0 else "earned"
    text = f"{verb} {abs(amount):,.{digits}f} {series.UNIT_NAMES[unit]} in {span}"
    return f"{text} ({note})" if note else text


def describe_execution_income(*, is_known: bool, has_blocks: bool) -> str:
    """Return the note about the part of the execution income that the chart does not have."""
    if not is_known:
        return CONSENSUS_ONLY
    return "" if has_blocks else FEES_ONLY


def sum_periods(
    frame: IntoFrame, blocks: IntoFrame | None, every: Every, by: By
) -> tuple[pl.DataFrame, bool]:
    """Return the income by period, and whether execution income is known.

    If it is not known, the net income is that of the consensus layer.
    """
    groups = "validator_index" if by == "validator" else ()
    rows = to_polars(sum_income(frame, blocks=blocks, every=every, by=groups, coverage=True))
    is_known = not rows["execution_income_wei"].null_count()
    if not is_known:
        consensus = pl.col("consensus_income_gwei").cast(pl.Decimal(28, 0)) * 10**9
        rows = rows.with_columns(
            consensus.cast(pl.Decimal(28, 0)).alias("net_income_wei"),
            pl.lit(0, pl.Decimal(28, 0)).alias("execution_income_wei"),
        )
    if every != "epoch":
        rows = rows.with_columns(time=series.MIDNIGHT)
    return rows, is_known


def build_daily_income_chart(totals: pl.DataFrame) -> Chart:
    """Build the stack of components by day, from the rows of `analysis.ledger_totals`.

    Daily statistics have no components: the two layers are then drawn.
    """
    if "attestation_reward_gwei" in totals.columns:
        totals = totals.drop("consensus_income_gwei")
    rows = totals.with_columns(time=series.MIDNIGHT, complete=True)
    x = Axis("Day", "day", series.to_datetime64(rows["time"]))
    units: tuple[Unit, Unit] = "eth", _choose_penalty_unit(rows)
    return _add_components(Chart(x, Axis("ETH")), rows, "day", *units, bars=True)


def _check_arguments(
    unit: Unit | None,
    by: By,
    every: Every,
    yield_index: IntoFrame | None,
    balances: IntoFrame | None,
) -> None:
    """Raise a `UsageError` for an argument that does not exist, or that has no effect."""
    if unit is not None:
        check_choice("unit", unit, get_args(Unit))
    check_choice("by", by, get_args(By))
    check_choice("every", every, get_args(Every))
    if by != "total" and yield_index is not None:
        raise UsageError(f"yield_index= needs by='total', not by={by!r}", hint="Leave one out.")
    if balances is not None and yield_index is None:
        raise UsageError(
            "balances= has an effect only with yield_index=",
            hint="Pass yield_index=bf.load_yield_index(...).",
        )


def _accumulate(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace amounts by exact running sums; per validator where there are validators."""
    amounts = [*REWARDS, *PENALTIES, "execution_income_wei", "net_income_wei"]
    sums = pl.col(amounts).cast(pl.Decimal(38, 0)).cum_sum()
    if "validator_index" in rows.columns:
        sums = sums.over("validator_index", order_by="time")
    return rows.with_columns(sums, complete=True)


def _find_incomplete(rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(~rows["complete"].to_numpy())


def _compute_bar_widths(rows: pl.DataFrame, every: Every) -> Positions:
    """Return the widths of the bars: four fifths of each day, week or month."""
    length = rows["time"].dt.offset_by(series.LENGTHS[every])
    return (series.to_datetime64(length) - series.to_datetime64(rows["time"])) * 0.8


def _choose_unit(rows: pl.DataFrame, *, cumulative: bool) -> Unit:
    """Return the unit of the axis: that of the largest amount."""
    gwei = np.abs(series.convert_amounts(rows["net_income_wei"], "gwei"))
    return series.choose_unit(gwei.sum() if cumulative else gwei.max(initial=0))


def _choose_penalty_unit(rows: pl.DataFrame) -> Unit:
    """Return the unit of the largest penalties; they are a small part of the income."""
    names = [name for name in PENALTIES if name in rows.columns]
    sums = rows.select(gwei=pl.sum_horizontal(pl.lit(0), *names))["gwei"]
    return series.choose_unit(series.to_floats(sums).max(initial=0))


def _stack_parts(rows: pl.DataFrame, unit: Unit) -> _Stack:
    """Return part, base and height of the non-zero parts: rewards upwards, penalties downwards.

    Without any, return a part that is zero, so that the axes have the days.
    """
    top, bottom = np.zeros(rows.height), np.zeros(rows.height)
    stack: _Stack = []
    zero: _Stack = []
    for part in _PARTS:
        if part not in rows.columns or rows[part].null_count():
            continue
        height = series.convert_amounts(rows[part], unit) * (-1 if part in PENALTIES else 1)
        if height.any():
            base = bottom if part in PENALTIES else top
            stack.append((part, base.copy(), height))
            base += height
        elif not zero:
            zero = [(part, top, height)]
    return stack or zero


def _add_components(
    chart: Chart, rows: pl.DataFrame, every: Every, unit: Unit, penalty_unit: Unit, *, bars: bool
) -> Chart:
    """Add the stack of parts, as bars or as steps; penalties have a panel with their own scale."""
    build = _build_bars if bars else _build_areas
    rewards = [part for part in _stack_parts(rows, unit) if part[0] not in PENALTIES]
    penalties = [part for part in _stack_parts(rows, penalty_unit) if part[0] in PENALTIES]
    panels = build(rows, rewards, every), build(rows, penalties, every)
    above = [_PARTS[part][0] for part, *_ in rewards]
    below = [_PARTS[part][0] for part, *_ in penalties]
    chart = replace(
        chart,
        y=replace(chart.y, zero_line=True),
        layers=panels[0],
        legend=(*reversed(above), *below),
    )
    if not below:
        return chart
    label = f"Penalties ({series.UNIT_NAMES[penalty_unit]})"
    y = replace(chart.y, label=label, thousands=penalty_unit == "gwei")
    return replace(chart, panel=Chart(chart.x, y, panels[1]))


def _build_bars(rows: pl.DataFrame, stack: _Stack, every: Every) -> tuple[Layer, ...]:
    """Build a stack of bars at the start of each day, week or month."""
    x, width = series.to_datetime64(rows["time"]), _compute_bar_widths(rows, every)
    incomplete = _find_incomplete(rows)
    return tuple(
        Bars(x, height, *_PARTS[part], base, width, incomplete) for part, base, height in stack
    )


def _build_areas(rows: pl.DataFrame, stack: _Stack, every: Every) -> tuple[Layer, ...]:
    """Build a stack of steps, each as wide as its epoch, day, week or month."""
    x = series.to_datetime64(rows["time"])
    if every == "epoch":
        jumps = np.diff(rows["number"].to_numpy())
        # The length of a single epoch is unknown, and has no effect on the drawing.
        width = (np.diff(x) // jumps).min() if len(jumps) else np.timedelta64(384, "s")
        ends = x + width
    else:
        ends = series.to_datetime64(rows["time"].dt.offset_by(series.LENGTHS[every]))
    positions, stepped = series.build_steps(x, ends, series.find_gaps(rows["number"]))
    # Every step reaches down to zero, and the outermost is drawn first: otherwise an epoch that is
    # narrower than a pixel would lose colours.
    return tuple(
        Area(
            positions,
            stepped(0 * height),
            stepped(base + height),
            *_PARTS[part],
            stepped(height),
            stepped=True,
            takes_kwargs=True,
        )
        for part, base, height in reversed(stack)
    )
