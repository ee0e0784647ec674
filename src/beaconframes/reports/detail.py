"""The choice between every epoch and daily statistics: by price, and by size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from beaconframes.addresses import is_loopback
from beaconframes.beacon_node import Node
from beaconframes.client.plan import PlanningExplorer, format_requests
from beaconframes.errors import RequestLimitExceeded
from beaconframes.reports.formats import show_quantity

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from beaconframes.client import Explorer
    from beaconframes.reports.input_frames import Detail, Inputs

    Load: TypeAlias = Callable[[Inputs], object]
    """Loads rows of a report."""

MOST_ROWS = 6_000_000
"""Validators times epochs up to which every epoch is loaded: they take 40 s and 4 GB."""
CHEAP, DEAR = 40, 1_000
"""Every epoch is cheap up to the first number of requests, and never above the second one."""
MONTH_SHARE = 100
"""Between them, it is cheap up to this part of the requests that are left of the month."""
NOT_IN_DAYS = "components of income, late votes, times offline, slashings and check of balances"
SHORTER = (180, 90, 30, 7, 2)
"""Days of the reports that an error suggests."""


def is_local(explorer: Explorer) -> bool:
    """Return whether the source is on this machine."""
    return is_loopback(urlsplit(explorer.url).hostname or "")


def is_node(explorer: Explorer) -> bool:
    """Return whether a node answers, also where its requests are only planned."""
    return isinstance(explorer, Node) or explorer.source.is_node


def has_quota(explorer: Explorer) -> bool:
    """Return whether requests are limited: by the service, or by ``max_requests``."""
    is_free = is_node(explorer) or is_local(explorer)
    is_limited = explorer.read_quota().month or explorer.settings.max_requests
    return not is_free or is_limited is not None


def choose_detail(inputs: Inputs, load: Load) -> None:
    """Choose the detail if it is ``auto``; raise RequestLimitExceeded if its price does not fit.

    *load* loads all that is left to load. Without a quota, the size decides.
    """

    @cache
    def price(detail: Detail) -> int:
        return count_requests(inputs, load, detail)

    is_limited, left = has_quota(inputs.explorer), count_left(inputs)
    if inputs.detail == "auto":
        inputs.detail = "epochs"
        rows = len(inputs.indices) * (inputs.last - inputs.first + 1)
        cheap = max(CHEAP, min((left or 0) // MONTH_SHARE, DEAR))
        cheap = cheap if left is None else min(cheap, left)
        if not inputs.find_whole_days():
            pass
        elif rows > MOST_ROWS:
            inputs.detail = "days"
            inputs.note = _describe_choice(f"every epoch is {rows:,} rows")
        elif is_limited and price("epochs") > max(price("days"), cheap):
            inputs.detail = "days"
            requests = f"they cost {price('days'):,} requests, every epoch {price('epochs'):,}"
            inputs.note = _describe_choice(requests)
    is_plan = isinstance(inputs.explorer, PlanningExplorer)
    if left is not None and not is_plan and price(inputs.detail) > left:
        _raise_limit(inputs, load, price(inputs.detail), left)


def _describe_choice(reason: str) -> str:
    return (
        f"Daily statistics, not every epoch: {reason}. They have no {NOT_IN_DAYS}: "
        'detail="epochs" loads them.'
    )


def count_left(inputs: Inputs) -> int | None:
    """Return how many requests the report may still send; None if no limit is known."""
    left, most = inputs.explorer.read_quota().left, inputs.explorer.settings.max_requests
    if most is None:
        return left
    rest = max(most - sum(item.requests for item in inputs.items.values()), 0)
    return rest if left is None else min(rest, left)


def count_requests(inputs: Inputs, load: Load, detail: Detail | None = None) -> int:
    """Return how many requests *load* sends, with another *detail*; sends none."""
    explorer = PlanningExplorer(inputs.explorer)
    # The planned loads write their requests into copies.
    items = {name: replace(item) for name, item in inputs.items.items()}
    load(replace(inputs, explorer=explorer, detail=detail or inputs.detail, items=items))
    return explorer.requests


def _raise_limit(inputs: Inputs, load: Load, needed: int, left: int) -> NoReturn:
    """Raise RequestLimitExceeded with both numbers, and with arguments that need fewer."""
    raise RequestLimitExceeded(
        f"this report needs at least {format_requests(needed)}, and {left:,} are left; none of "
        "them was sent",
        hint=_find_affordable(inputs, load, left),
    )


def _find_affordable(inputs: Inputs, load: Load, left: int) -> str:
    """Return the arguments of a report that needs at most *left* requests."""
    if inputs.detail == "epochs" and inputs.find_whole_days():
        requests = count_requests(inputs, load, "days")
        if requests <= left:
            return f'detail="days" needs {format_requests(requests)}'
    for days in SHORTER:
        first = inputs.last + 1 - days * inputs.chain.epochs_per_day
        if first > inputs.first:
            requests = count_requests(replace(inputs, first=first), load)
            if requests <= left:
                return f"since={first} ({days} days) needs {format_requests(requests)}"
    count = len(inputs.indices)
    while count > 1:
        count //= 2
        requests = count_requests(replace(inputs, indices=inputs.indices[:count]), load)
        if requests <= left:
            return f"{show_quantity(count, 'validator')}: {format_requests(requests)}"
    return "Use another key, or wait until the quota resets"
