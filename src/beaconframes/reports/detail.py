"""The choice between every epoch and daily statistics: by price, and by size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from beaconframes.addresses import is_local_url
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
    return is_local_url(explorer.url)


def is_limited(explorer: Explorer) -> bool:
    """Return whether a limit of requests is known: of the service, or ``max_requests``."""
    quota, most = explorer.read_quota(), explorer.settings.max_requests
    return any(limit is not None for limit in (quota.month, quota.left, most))


def has_quota(explorer: Explorer) -> bool:
    """Return whether requests are limited; those to a remote service may be."""
    return is_limited(explorer) or not (explorer.source.is_node or is_local(explorer))


def choose_detail(inputs: Inputs, load: Load) -> None:
    """Choose the detail if it is ``auto``: by price, or by size if there is no quota.

    *load* loads all that is left to load.
    """

    @cache
    def price(detail: Detail) -> int:
        return count_requests(inputs, load, detail)

    if inputs.detail != "auto":
        return
    left = count_left(inputs)
    inputs.detail = "epochs"
    rows = len(inputs.indices) * (inputs.last - inputs.first + 1)
    cheap = max(CHEAP, min((left or 0) // MONTH_SHARE, DEAR))
    cheap = cheap if left is None else min(cheap, left)
    if not inputs.find_whole_days():
        return
    if rows > MOST_ROWS:
        inputs.detail = "days"
        inputs.note = _describe_choice(f"every epoch is {rows:,} rows")
    elif has_quota(inputs.explorer) and price("epochs") > max(price("days"), cheap):
        inputs.detail = "days"
        requests = f"they cost {price('days'):,} requests, every epoch {price('epochs'):,}"
        inputs.note = _describe_choice(requests)


def check_quota(inputs: Inputs, load: Load) -> None:
    """Raise RequestLimitExceeded if *load* sends more requests than are left.

    The error has both numbers, and arguments that need fewer.
    """
    left = count_left(inputs)
    if left is None or (needed := count_requests(inputs, load)) <= left:
        return
    # Before the first request, the validators are not loaded yet.
    others = inputs.explorer.requests if isinstance(inputs.explorer, PlanningExplorer) else 0
    raise RequestLimitExceeded(
        f"this report needs at least {format_requests(needed + others)}, and {left + others:,} "
        "are left; none of them was sent",
        hint=_find_affordable(inputs, load, left, others),
    )


def _describe_choice(reason: str) -> str:
    return (
        f"Daily statistics, not every epoch: {reason}. They have no {NOT_IN_DAYS}: "
        'detail="epochs" loads them.'
    )


def count_left(inputs: Inputs) -> int | None:
    """Return how many requests the report may still send; None if no limit is known."""
    explorer = inputs.explorer
    left, most = explorer.read_quota().left, explorer.settings.max_requests
    if left is not None and isinstance(explorer, PlanningExplorer):
        left -= explorer.requests
    if most is not None:
        most -= sum(item.requests for item in inputs.items.values())
    known = [limit for limit in (left, most) if limit is not None]
    return max(min(known), 0) if known else None


def count_requests(inputs: Inputs, load: Load, detail: Detail | None = None) -> int:
    """Return how many requests *load* sends, with another *detail*; sends none."""
    explorer = PlanningExplorer(inputs.explorer)
    # The planned loads write their requests into copies.
    items = {name: replace(item) for name, item in inputs.items.items()}
    load(replace(inputs, explorer=explorer, detail=detail or inputs.detail, items=items))
    return explorer.requests


def _find_affordable(inputs: Inputs, load: Load, left: int, others: int = 0) -> str:
    """Return the arguments of a report that needs at most *left* requests, beside the *others*."""
    has_days = inputs.detail == "epochs" and bool(inputs.find_whole_days())
    details: list[Detail] = [inputs.detail, "days"] if has_days else [inputs.detail]
    smaller = {"": inputs}
    for days in SHORTER:
        first = inputs.last + 1 - days * inputs.chain.epochs_per_day
        if first > inputs.first:
            smaller[f"since={first} ({days} days)"] = replace(inputs, first=first)
    count = len(inputs.indices)
    while count > 1:
        count //= 2
        text = show_quantity(count, "validator")
        smaller[text] = replace(inputs, indices=inputs.indices[:count])
    for text, changed in smaller.items():
        for detail in details:
            requests = count_requests(changed, load, detail)
            if requests <= left:
                other = "" if detail == inputs.detail else 'detail="days"'
                arguments = ", ".join(filter(None, (other, text)))
                return f"{arguments} needs {format_requests(requests + others)}"
    return "Use another key, or wait until the quota resets"
