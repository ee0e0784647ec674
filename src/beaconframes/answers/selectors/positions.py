"""The rows that slots, blocks, periods and ranges of V2 select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.answers.selectors.base import RowSelector
from beaconframes.endpoint import (
    BlockSelector,
    EpochSelector,
    ObjectNotFound,
    PeriodSelector,
    RequestRefused,
    RollingWindow,
    SlotNotFinal,
    SlotSelector,
    SlotTimeRange,
    TimestampRange,
)
from beaconframes.endpoint.identifiers import is_natural
from beaconframes.endpoint.positions_v2 import PERIOD_FIELD, PERIOD_VIEWS, ROOT, SLOT_VIEWS
from beaconframes.endpoint.ranges_v2 import LAST_SECOND, WINDOWS
from beaconframes.v2._day_range import DayRange

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields, Parameter


def parse_slot(parameter: SlotSelector, fields: Fields, view: View) -> int:
    """Return the slot that a request selects, or raise RequestRefused."""
    position = fields.get("slot", {} if parameter.number_only else {"view": "latest"})
    kind, value = "", None
    if isinstance(position, dict) and len(position) == 1:
        ((kind, value),) = position.items()
    if kind == "number" and is_natural(value):
        last = view.head.latest("slot", view.chain, finalized=True)
        if parameter.final_only and value > last:
            raise SlotNotFinal(
                f"requested slot {value} is greater than latest finalized slot {last}"
            )
        if value > view.head.slot:
            raise ObjectNotFound(f"slot {value} does not exist yet")
        return value
    if parameter.number_only:
        raise RequestRefused("slot must have a number, and nothing else")
    if kind == "view" and value in SLOT_VIEWS:
        return view.head.latest("slot", view.chain, finalized=value == "finalized")
    if kind == "root" and isinstance(value, str) and ROOT.fullmatch(value):
        root = f"0x{value.lower().removeprefix('0x')}"
        blocks = view.scan("blocks").filter(pl.col("block_root") == root)
        slots = blocks.select("slot").collect().to_series()
        if slots.is_empty():
            raise ObjectNotFound(f"block {root} does not exist")
        return int(slots[0])
    raise RequestRefused("slot must have exactly one of number, root and view")


def find_slot(parameter: SlotSelector, fields: Fields, view: View) -> list[int] | None:
    """Return the slot; None for a block that is requested by its root."""
    slot = parse_slot(parameter, fields, view)
    return None if parameter.root and "root" in fields.get("slot", {}) else [slot]


def match_block(parameter: SlotSelector, fields: Fields, view: View) -> pl.Expr:
    """Match the one block that is requested by its root."""
    slot, root = parse_slot(parameter, fields, view), fields["slot"]["root"]
    assert parameter.root is not None
    has_root = pl.col(parameter.root.name) == f"0x{root.lower().removeprefix('0x')}"
    return (pl.col(parameter.column.name) == slot) & has_root


def find_slot_range(parameter: SlotSelector, fields: Fields, view: View) -> tuple[int, int]:
    """Return the one slot."""
    slot = parse_slot(parameter, fields, view)
    return slot, slot


def parse_position(fields: Fields, field: str, views: tuple[str, ...]) -> tuple[str, Any]:
    """Return "number" or "view", and its value, from a request, or raise RequestRefused."""
    position = fields.get(field)
    if isinstance(position, dict) and len(position) == 1:
        ((kind, value),) = position.items()
        if (kind == "number" and is_natural(value)) or (kind == "view" and value in views):
            return kind, value
    raise RequestRefused(f"{field} must have exactly one of number and view")


def find_execution_block(
    _parameter: BlockSelector, fields: Fields, _view: View
) -> list[int] | None:
    """Return the number; None for a block by name."""
    kind, value = parse_position(fields, "block", SLOT_VIEWS)
    return [value] if kind == "number" else None


def match_latest_block(parameter: BlockSelector, fields: Fields, _view: View) -> pl.Expr:
    """Match the latest block, or the latest finalized one."""
    number = pl.col(parameter.column.name)
    if parse_position(fields, "block", SLOT_VIEWS)[1] == "finalized":
        number = number.filter(pl.col("finality") == "finalized")
    return pl.col(parameter.column.name) == number.max()


def parse_period(fields: Fields, view: View) -> int:
    """Return the period that a request selects, or raise RequestRefused."""
    kind, value = parse_position(fields, PERIOD_FIELD, PERIOD_VIEWS)
    latest = view.head.latest("period", view.chain)
    if kind == "number":
        if value > latest + 1:
            raise ObjectNotFound(f"the committee of period {value} is not known yet")
        return int(value)
    return latest + int(value == "next")


def find_period(_parameter: PeriodSelector, fields: Fields, view: View) -> range:
    """Return the one period."""
    period = parse_period(fields, view)
    return range(period, period + 1)


def find_period_slots(_parameter: PeriodSelector, fields: Fields, view: View) -> tuple[int, int]:
    """Return the slots of the period."""
    length = view.chain.epochs_per_sync_period * view.chain.slots_per_epoch
    first = parse_period(fields, view) * length
    return first, first + length - 1


def find_epoch(parameter: EpochSelector, fields: Fields, view: View) -> range:
    """Return the one epoch, or raise RequestRefused."""
    epoch = fields.get("epoch")
    if not is_natural(epoch):
        raise RequestRefused("epoch must be a whole number from 0 up")
    if epoch > view.head.latest("epoch", view.chain, finalized=parameter.finalized):
        raise ObjectNotFound(f"epoch {epoch} does not exist yet")
    return range(epoch, epoch + 1)


def find_epoch_slots(_parameter: EpochSelector, fields: Fields, view: View) -> tuple[int, int]:
    """Return the slots of the epoch."""
    epoch: int = fields["epoch"]
    return view.chain.first_slot_of(epoch), view.chain.last_slot_of(epoch)


def parse_window(parameter: RollingWindow, fields: Fields, view: View) -> tuple[int, int]:
    """Return the first and the last epoch of the window, or raise RequestRefused."""
    interval = fields.get("range")
    window = interval.get("evaluation_window") if isinstance(interval, dict) else None
    if window not in parameter.choices():
        words = ", ".join(parameter.choices())
        raise RequestRefused(f"range.evaluation_window must be one of {words}")
    last = view.head.finalized_epoch
    days = WINDOWS[window]
    return 0 if days is None else max(last - days * view.chain.epochs_per_day + 1, 0), last


def match_window(parameter: RollingWindow, fields: Fields, view: View) -> pl.Expr:
    """Match the rows of the window's epochs."""
    return pl.col(parameter.column.name).is_between(*parse_window(parameter, fields, view))


def find_window_slots(parameter: RollingWindow, fields: Fields, view: View) -> tuple[int, int]:
    """Return the slots of the window's epochs."""
    first, last = parse_window(parameter, fields, view)
    return view.chain.first_slot_of(first), view.chain.last_slot_of(last)


def parse_seconds(fields: Fields) -> tuple[int, int]:
    """Return the first and the last second of a range of time, or raise RequestRefused."""
    interval = fields.get("range") or {}
    bounds = interval.get("timestamp", {}) if isinstance(interval, dict) else None
    if not isinstance(bounds, dict) or set(interval) - {"timestamp"}:
        raise RequestRefused("range must have a timestamp, and nothing else")
    start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
    if not (is_natural(start) and is_natural(end) and start <= end <= LAST_SECOND):
        raise RequestRefused("range.timestamp must have a start, and an end that is not before it")
    return start, end


def find_timed_slots(_parameter: Parameter, fields: Fields, view: View) -> tuple[int, int]:
    """Return the first and the last slot of a range of time."""
    start, end = parse_seconds(fields)
    genesis, length = int(view.chain.genesis.timestamp()), view.chain.seconds_per_slot
    last = view.head.latest("slot", view.chain, finalized=True)
    first = max(-((genesis - start) // length), 0)
    return first, max(min((end - genesis) // length, last), first - 1)


def match_timed_slots(parameter: SlotTimeRange, fields: Fields, view: View) -> pl.Expr:
    """Match the rows of the slots in the range."""
    return pl.col("slot").is_between(*find_timed_slots(parameter, fields, view))


def match_times(parameter: TimestampRange, fields: Fields, _view: View) -> pl.Expr:
    """Match the rows in the range."""
    return pl.col(parameter.column.name).dt.epoch("s").is_between(*parse_seconds(fields))


def find_day_slots(parameter: DayRange, fields: Fields, view: View) -> tuple[int, int]:
    """Return the first and the last slot that a request selects, or raise RequestRefused."""
    interval = fields.get("range")
    if not isinstance(interval, dict) or len(interval) != 1:
        raise RequestRefused("range must have exactly one form")
    ((form, bounds),) = interval.items()
    if form == "evaluation_window":
        return find_window_slots(RollingWindow(parameter.column), fields, view)
    if form == "timestamp":
        return find_timed_slots(parameter, fields, view)
    given: Any = bounds if form in ("epoch", "slot") and isinstance(bounds, dict) else {}
    start, end = given.get("start"), given.get("end")
    if not (is_natural(start) and is_natural(end) and start <= end):
        raise RequestRefused("range must be a window, or have a start and an end after it")
    size = view.chain.slots_per_epoch if form == "epoch" else 1
    if end * size * view.chain.seconds_per_slot > LAST_SECOND:
        raise RequestRefused("range ends in the far future")
    last = view.head.latest("slot", view.chain, finalized=True)
    return start * size, max(min((end + 1) * size - 1, last), start * size - 1)


def match_days(parameter: DayRange, fields: Fields, view: View) -> pl.Expr:
    """Match the days that end in the range: as many as a window has days."""
    size = view.chain.epochs_per_day * view.chain.slots_per_epoch
    last_slot = (pl.col(parameter.column.name) + 1) * size - 1
    return last_slot.is_between(*find_day_slots(parameter, fields, view))


POSITION_SELECTORS: dict[type[Parameter], RowSelector] = {
    SlotSelector: RowSelector(find_slot, match_block, find_slots=find_slot_range),
    BlockSelector: RowSelector(find_execution_block, match_latest_block),
    PeriodSelector: RowSelector(find_period, find_slots=find_period_slots),
    EpochSelector: RowSelector(find_epoch, find_slots=find_epoch_slots),
    RollingWindow: RowSelector(match=match_window, find_slots=find_window_slots),
    SlotTimeRange: RowSelector(match=match_timed_slots, find_slots=find_timed_slots),
    TimestampRange: RowSelector(match=match_times),
    DayRange: RowSelector(match=match_days, find_slots=find_day_slots),
}
"""The selector of each type of parameter."""
