"""The rows that validators, numbers, texts and ranges of V1 select."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.answers.selectors.base import RowSelector
from beaconframes.endpoint import (
    UNRESOLVED,
    AddressOrName,
    EpochWindow,
    Identifiers,
    LastEpochs,
    Numbers,
    Pages,
    RequestRefused,
    Texts,
    UnitPerRequest,
)
from beaconframes.endpoint.identifiers import is_pubkey, parse_number
from beaconframes.errors import DatasetError
from beaconframes.v1._slot_items import SlotItems
from beaconframes.v1._wall_parameters import SlotWindow
from beaconframes.v1.attestations import RecentEpochs
from beaconframes.v1.proposals import ProposalWindow
from beaconframes.v1.validator_stats import GENESIS_DEPOSITS, DayWindow
from beaconframes.v1.validator_withdrawals import WithdrawalWindow

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields, Parameter
    from beaconframes.v1.execution_blocks import BlockNumbers


INDICES = re.compile(r"[0-9]{1,18}(,[0-9]{1,18})*", re.ASCII)
"""A list of validators by index only."""


def parse_validators(parameter: Identifiers, fields: Fields) -> tuple[list[int], list[str]]:
    """Return the indices and the public keys in a request, or raise RequestRefused."""
    items = fields[parameter.arg].split(",")
    if len(items) > parameter.at_most:
        raise RequestRefused(f"only a maximum of {parameter.at_most} query parameters are allowed")
    if INDICES.fullmatch(fields[parameter.arg]):
        return [*map(int, items)], []  # the usual case, in a tenth of the time
    indices, pubkeys = [], []
    for item in items:
        if is_pubkey(item):
            pubkeys.append(f"0x{item.lower().removeprefix('0x')}")
        elif (index := parse_number(item)) is not None:
            indices.append(index)
        else:
            raise RequestRefused(f"invalid validator-parameter: {item}")
    return indices, pubkeys


def find_validators(parameter: Identifiers, fields: Fields, view: View) -> set[int]:
    """Return the validator indices in a request; raise RequestRefused if all are unknown."""
    indices, pubkeys = parse_validators(parameter, fields)
    known = {*indices, *(n for key in pubkeys if (n := view.indices.get(key)) is not None)}
    if not known:
        raise RequestRefused(f"invalid validator argument, pubkey(s) {UNRESOLVED}")
    return known


def find_number(
    parameter: Numbers | UnitPerRequest, fields: Fields, view: View
) -> tuple[int] | None:
    """Return the number in *fields*, or that of a tag such as "latest"; None for the latest day."""
    text: str = fields[parameter.wire]
    unit: Any = parameter.column.unit
    if text not in parameter.tags:
        if (number := parse_number(text)) is None:
            raise RequestRefused(parameter.error)
        return (number,)
    if text == "next":
        return (view.head.latest(unit, view.chain) + 1,)
    if unit == "day":
        return None
    return (view.head.latest(unit, view.chain, finalized=text == "finalized"),)


def find_past_number(parameter: UnitPerRequest, fields: Fields, view: View) -> tuple[int] | None:
    """Return the number in *fields*; raise RequestRefused for a future one that is refused."""
    number = parse_number(fields[parameter.wire])
    unit: Any = parameter.column.unit
    newest = view.head.latest(unit, view.chain)
    if parameter.refuses_future and number is not None and number > newest:
        raise RequestRefused(parameter.error)
    return find_number(parameter, fields, view)


def match_latest(parameter: Numbers | UnitPerRequest, _fields: Fields, _view: View) -> pl.Expr:
    """Match the rows with the largest number."""
    number = pl.col(parameter.column.name)
    return number == number.max()


def find_item_slot(parameter: SlotItems, fields: Fields, view: View) -> tuple[int] | None:
    """Return the slot in *fields*; with ``validates_slot``, refuse a future one."""
    text = fields[parameter.wire]
    if parameter.validates_slot and text.startswith("-") and text[1:].isdigit():
        raise RequestRefused("slot must be a positive number")
    if parameter.validates_slot and (parse_number(text) or 0) > view.head.slot:
        raise RequestRefused(f"slot is in the future. The latest slot is {view.head.slot}")
    return find_number(parameter, fields, view)


def parse_text(parameter: Texts, fields: Fields) -> str:
    """Return the text in *fields*, or raise RequestRefused."""
    text = parameter.canonical(fields[parameter.wire])
    if not re.fullmatch(parameter.pattern, text):
        raise RequestRefused(parameter.error)
    return text


def match_text(parameter: Texts, fields: Fields, _view: View) -> pl.Expr | None:
    """Match the rows of the subject; all rows if they do not have its text."""
    text, column = parse_text(parameter, fields), parameter.column
    return None if column is None else pl.col(column.name) == text


def find_address(parameter: AddressOrName, fields: Fields, view: View) -> str:
    """Return the value in *fields*, or the address of a name; refuse an unknown name."""
    text = parse_text(parameter, fields)
    if text.startswith("0x"):
        return text
    try:
        addresses = view.scan("names").filter(requested=text).select("address").collect()
    except DatasetError:
        addresses = pl.DataFrame()
    if addresses.is_empty():
        raise RequestRefused(parameter.error)
    return str(addresses.item(0, 0)).lower()


def match_address(parameter: AddressOrName, fields: Fields, view: View) -> pl.Expr:
    """Match the rows of one value."""
    return pl.col(parameter.matches) == find_address(parameter, fields, view)


def parse_field(
    fields: Fields, name: str, default: int, low: int, high: int | None, error: str
) -> int:
    """Return the field *name* as a number from *low* to *high*, or raise RequestRefused."""
    if name not in fields:
        return default
    number = parse_number(fields[name])
    if number is None or number < low or (high is not None and number > high):
        raise RequestRefused(error)
    return number


def find_window(parameter: EpochWindow, fields: Fields, view: View) -> range:
    """Return the epochs of the window."""
    newest = view.head.latest("epoch", view.chain, finalized=parameter.finalized)
    error = "invalid {} parameter"
    latest = parse_field(fields, "latest_epoch", newest, 0, newest, error.format("latest epoch"))
    offset = parse_field(fields, "offset", 0, 0, latest, error.format("offset"))
    size = parameter.window
    limit = parse_field(fields, "limit", size, 1, size, error.format("limit"))
    last = latest - offset
    return range(last - limit + 1, last + 1)


def find_last_epochs(parameter: LastEpochs, fields: Fields, view: View) -> range:
    """Return the epochs of the window."""
    newest = view.head.latest("epoch", view.chain)
    last = parse_field(fields, "epoch", newest, 0, None, "invalid epoch parameter")
    return range(last - parameter.length + 1, last + 1)


def find_withdrawal_epochs(parameter: WithdrawalWindow, fields: Fields, view: View) -> range:
    """Return the epochs of the window; those up to the latest one for an invalid number."""
    is_valid = parse_number(fields.get("epoch", "")) is not None
    return find_last_epochs(parameter, fields if is_valid else {}, view)


def find_recent_epochs(parameter: RecentEpochs, fields: Fields, view: View) -> range:
    """Return the requested epochs, or raise RequestRefused.

    Epochs before the window are served only to requests that name both ends, so that all
    other requests are answered as by the service.
    """
    latest = view.head.latest("epoch", view.chain)
    oldest = parameter.oldest(latest)
    has_window = view.drops_old_units or "startEpoch" not in fields
    error = "invalid end epoch parameter"
    last = parse_field(fields, "endEpoch", latest, oldest if has_window else 0, latest, error)
    oldest = oldest if has_window else parameter.oldest(last)
    error = "invalid start epoch parameter"
    return range(parse_field(fields, "startEpoch", oldest, oldest, last, error), last + 1)


def find_days(_parameter: DayWindow, fields: Fields, view: View) -> range:
    """Return the days of the range up to the current one, or raise RequestRefused."""
    running = view.chain.at("day", view.chain.time_of("epoch", view.head.epoch))
    last = min(parse_day(fields, "end_day", running), running)
    first = parse_day(fields, "start_day", GENESIS_DEPOSITS)
    if first > last:
        raise RequestRefused("start_day must be less than end_day")
    return range(first, last + 1)


def parse_day(fields: Fields, name: str, default: int) -> int:
    """Return the query parameter *name* as a day; refuse an invalid one."""
    text = fields.get(name, str(default))
    number = GENESIS_DEPOSITS if text == str(GENESIS_DEPOSITS) else parse_number(text)
    if number is None:
        raise RequestRefused(f"invalid {name} parameter")
    return number


def find_wall_slots(parameter: SlotWindow, fields: Fields, view: View) -> range:
    """Return the slots of the range, or raise RequestRefused."""
    last = parse_field(fields, "slot", view.head.slot, 0, None, "invalid slot provided")
    default = max(last - parameter.default, 0)
    first = parse_field(fields, "startSlot", default, 0, None, "invalid startSlot provided")
    last = max(last, parameter.default)
    if first > last:
        raise RequestRefused("start slot greater than end slot")
    return range(first, last + 1)


def select_page(parameter: Pages, rows: pl.LazyFrame, fields: Fields, _view: View) -> pl.LazyFrame:
    """Return the rows of the page, or raise RequestRefused for an invalid number."""
    limit = parse_number(fields.get("limit", str(parameter.default)))
    offset = parse_number(fields.get("offset", "0"))
    if limit is None or not 1 <= limit <= parameter.at_most:
        raise RequestRefused("invalid limit parameter")
    if offset is None:
        raise RequestRefused("invalid offset parameter")
    return rows.slice(offset, limit)


def sort_newest_first(
    parameter: EpochWindow | RecentEpochs, rows: pl.LazyFrame, _fields: Fields
) -> pl.LazyFrame:
    """Return *rows* sorted by epoch, newest first, and then by validator."""
    return rows.sort(parameter.column.name, "validator_index", descending=[True, False])


def sort_by_order(parameter: AddressOrName, rows: pl.LazyFrame, _fields: Fields) -> pl.LazyFrame:
    """Return *rows* in the order that the parameter states."""
    return rows.sort(parameter.order, nulls_last=True)


def sort_descending(
    parameter: DayWindow | BlockNumbers, rows: pl.LazyFrame, _fields: Fields
) -> pl.LazyFrame:
    """Return *rows* with the largest number first."""
    return rows.sort(parameter.column.name, descending=True)


SELECTORS_V1: dict[type[Parameter], RowSelector] = {
    Identifiers: RowSelector(find_validators),
    Numbers: RowSelector(find_number, match_latest),
    UnitPerRequest: RowSelector(find_past_number, match_latest),
    SlotItems: RowSelector(
        find_item_slot, sort=lambda p, rows, _: rows.sort(p.order, descending=p.descending)
    ),
    Texts: RowSelector(match=match_text),
    AddressOrName: RowSelector(match=match_address, sort=sort_by_order),
    EpochWindow: RowSelector(find_window, sort=sort_newest_first),
    LastEpochs: RowSelector(find_last_epochs),
    Pages: RowSelector(select=select_page),
    ProposalWindow: RowSelector(
        find_last_epochs,
        sort=lambda _, rows, __: rows.sort(
            "proposer_index", "epoch", "slot", descending=[False, True, True]
        ),
    ),
    WithdrawalWindow: RowSelector(
        find_withdrawal_epochs, sort=lambda _, rows, __: rows.sort("withdrawal_index")
    ),
    RecentEpochs: RowSelector(find_recent_epochs, sort=sort_newest_first),
    DayWindow: RowSelector(find_days, sort=sort_descending),
    SlotWindow: RowSelector(find_wall_slots),
}
"""The selectors of these types, and of those that extend them and have none of their own."""
