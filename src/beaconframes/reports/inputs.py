"""Loading of what a report is made from, with as few requests as possible."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import polars as pl

from beaconframes import v1, v2
from beaconframes.client.plan import PlanningEnded, PlanningExplorer, format_requests
from beaconframes.endpoint.identifiers import is_pubkey, normalize_validators
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, list_column_names, to_polars
from beaconframes.reports.detail import (
    check_quota,
    choose_detail,
    count_left,
    count_requests,
    has_quota,
    is_limited,
    is_local,
)
from beaconframes.reports.group_labels import (
    KEYS,
    check_labels,
    check_members,
    find_indices,
    read_groups,
)
from beaconframes.reports.input_frames import EPOCHS_PER_LOAD, Detail, Input, Inputs
from beaconframes.time_range import local_range
from beaconframes.v1.attestations import SERVED_EPOCHS
from beaconframes.v1.proposals import PROPOSALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client import Explorer
    from beaconframes.endpoint import ChainHead
    from beaconframes.time_range import Moment

_DEFAULT_RANGE = timedelta(days=30)
_MOST_VOTES = 5_000_000
_LARGEST_SET = 100
"""Validators in a set of V2."""
_DUTY_EPOCHS = SERVED_EPOCHS - 2
"""Epochs whose duties are loaded: the head moves while a report loads."""
_WINDOWS = {"24h": 1, "7d": 7, "30d": 30, "90d": 90}
"""Windows of V2, in days."""


def find_range(head: ChainHead, since: Any, until: Any, tz: str = "UTC") -> tuple[int, int]:
    """Return the first and the last final epoch of a range. Default: the last 30 days.

    Dates and months are those of the time zone *tz*.
    """
    if since is None:
        # A chain that is younger is reported from its genesis.
        since = 0 if head.read_present() - _DEFAULT_RANGE < head.chain.genesis else _DEFAULT_RANGE
    bounds = local_range(since, until, tz=tz)
    span = head.span(bounds.get("since"), bounds.get("until"), "epoch", length=1, finalized=True)
    return span.first, min(span.last, head.latest("epoch", finalized=True))


def load_inputs(
    validators: Any,
    *,
    since: Moment | None,
    until: Moment | None,
    groups: Any,
    detail: Detail,
    explorer: Explorer,
    tz: str = "UTC",
    prices: pl.DataFrame | None = None,
    price: str = "price",
) -> Inputs:
    """Load what a report needs, with as few requests as possible.

    Only the validators are necessary: what else the service does not have is left out.
    """
    check_choice("detail", detail, get_args(Detail))
    if groups is None and "group" in list_column_names(validators):
        groups = to_polars(validators)
        groups = groups if groups["group"].count() else None
    labels = read_groups(groups)
    if validators is None:
        if labels is None:
            raise UsageError("no validators are given", hint="Pass indices or groups")
        check_labels(groups)
        validators = labels

    def begin(source: Explorer) -> Inputs:
        head = source.chain_head
        first, last = find_range(head, since, until, tz)
        if first > last:
            final = head.latest("epoch", finalized=True)
            raise UsageError(
                f"since={since!r} is after the latest finalized epoch, {final}",
                hint="Reports are made of final epochs. Give an earlier since",
            )
        inputs = Inputs(source, [], None, first, last, detail, tz, prices, price)
        inputs.is_range_given = since is not None
        inputs.load("validators", v1.load_validators, validators)
        _add_names(inputs.items["validators"], validators)
        inputs.indices = _list_indices(inputs, validators)
        inputs.groups = find_indices(labels, inputs.get("validators"))
        check_members(labels, inputs, validators)
        choose_detail(inputs, _load_rest)
        return inputs

    if isinstance(explorer, PlanningExplorer):
        _plan(begin(explorer))
    if is_limited(explorer):
        planned = PlanningExplorer(explorer)
        planned.chain_head.latest("epoch")
        # The head of a simulated chain is unknown before its first response.
        if not (planned.assumptions and is_local(explorer)):
            check_quota(begin(planned), _load_rest)
    inputs = begin(explorer)
    check_quota(inputs, _load_rest)
    _load_rest(inputs)
    return inputs


def _plan(inputs: Inputs) -> NoReturn:
    """End the planning of a report with the requests of each loader."""
    _load_rest(inputs)
    parts: dict[str, int] = {}
    for item in inputs.items.values():
        parts[item.loader] = parts.get(item.loader, 0) + item.requests
    raise PlanningEnded(tuple(parts.items()), inputs.note)


def _load_rest(inputs: Inputs) -> None:
    """Load the rows of the validators, and what they are compared with."""
    if inputs.has_epochs:
        _load_epochs(inputs)
    else:
        _load_days(inputs)
    _load_network(inputs)
    _load_future(inputs)


def _list_indices(inputs: Inputs, validators: Any) -> list[int]:
    """Return the indices of the validators that exist; in a plan, of all that are requested."""
    table = inputs.get("validators")
    if isinstance(inputs.explorer, PlanningExplorer):
        resolved = [] if table is None else table["validator_index"].to_list()
        given = [text for text in normalize_validators(validators) if not is_pubkey(text)]
        return sorted({*map(int, given), *resolved})
    if (error := inputs.items["validators"].error) is not None:
        raise error
    if table is None or table.is_empty():
        raise UsageError(
            "the validators cannot be loaded: no such validator", hint="Check the indices."
        )
    indices: list[int] = table["validator_index"].drop_nulls().sort().to_list()
    return indices


def _add_names(item: Input, validators: Any) -> None:
    """Name the validators as the requested frame does; others keep the name of the service."""
    if item.rows is None or "name" not in list_column_names(validators):
        return
    named = to_polars(validators)
    for key in KEYS & set(named.columns):
        given = named.drop_nulls(key).unique(key, keep="first").select(key, given="name")
        rows = item.rows.join(given, key, how="left", maintain_order="left")
        item.rows = rows.with_columns(name=pl.coalesce("given", "name")).drop("given")


def _load_epochs(inputs: Inputs) -> None:
    head = inputs.explorer.chain_head.latest("epoch")
    inputs.load_epochs("income", v1.load_income_history)
    inputs.begin_with("income", "epoch")
    has_windows = inputs.last - inputs.first >= EPOCHS_PER_LOAD
    if isinstance(inputs.explorer, PlanningExplorer) and has_windows and is_local(inputs.explorer):
        inputs.explorer.assume_fewer("a dataset may not have the first epochs")
    inputs.load_epochs("balances", v1.load_balance_history, until=min(inputs.last + 1, head))
    inputs.load_epochs("withdrawals", v1.load_validator_withdrawals)
    inputs.load_epochs("proposals", v1.load_proposals)
    _load_blocks(inputs)
    inputs.load("deposits", v1.load_deposits, inputs.indices)
    _load_duties(inputs, head)


def _load_duties(inputs: Inputs, head: int) -> None:
    """Load why votes were late: duties of the last epochs, and their slots if they cost nothing."""
    since = max(inputs.first, head - _DUTY_EPOCHS + 1)
    reason = ""
    if since > inputs.last:
        reason = (
            f"services have the duties of the last {SERVED_EPOCHS} epochs, and the report ends "
            "earlier"
        )
    elif inputs.explorer.source.is_node:
        reason = "a node would have to read the blocks of these epochs"
    if reason:
        inputs.skip("attestations", v1.load_attestations, reason)
        inputs.skip("slots", v1.load_epoch_slots, reason)
        return
    span: dict[str, Any] = {"since": since, "until": inputs.last}
    inputs.load("attestations", v1.load_attestations, inputs.indices, **span)
    if not has_quota(inputs.explorer):
        inputs.load("slots", v1.load_epoch_slots, **span)
    else:
        reason = f"{_DUTY_EPOCHS} requests: a service answers one epoch per request"
        inputs.skip("slots", v1.load_epoch_slots, reason)


def _load_days(inputs: Inputs) -> None:
    """Load a row per validator and day, and the missed proposals of these days."""
    inputs.use_days()
    first, last = _find_days(inputs)
    length = inputs.chain.epochs_per_day
    reason = "daily statistics are loaded instead"
    inputs.skip("income", v1.load_income_history, reason)
    inputs.skip("balances", v1.load_balance_history, reason)
    inputs.skip("withdrawals", v1.load_validator_withdrawals, reason)
    inputs.load("stats", v1.load_validator_stats, inputs.indices, since=first, until=last)
    inputs.begin_with("stats", "day")
    _load_blocks(inputs)
    stats = inputs.get("stats")
    if isinstance(inputs.explorer, PlanningExplorer):
        inputs.explorer.assume_more("missed proposals are loaded for the days that have some")
    lost = pl.col("missed_blocks").fill_null(0) + pl.col("orphaned_blocks").fill_null(0)
    if stats is None:
        inputs.skip("proposals", v1.load_proposals, "daily statistics are missing")
        inputs.items["proposals"].cause = inputs.items["stats"].cause
        return
    days = stats.filter(lost > 0, pl.col("day") >= 0).group_by("day").agg("validator_index")
    for day, indices in days.sort("day").iter_rows():
        until = (day + 1) * length - 1
        rows = inputs.load("proposals", v1.load_proposals, indices, since=day * length, until=until)
        if rows is None:
            break
    if days.is_empty():
        inputs.items["proposals"] = Input("proposals", "load_proposals", PROPOSALS.table.empty())


def _find_days(inputs: Inputs) -> tuple[int, int]:
    """Return the first and the last day of the range; a day that has not ended does not count."""
    length = inputs.chain.epochs_per_day
    last = min(inputs.last // length, inputs.explorer.chain_head.latest("day"))
    return min(inputs.first // length, last), last


def _load_blocks(inputs: Inputs) -> None:
    """Load the blocks of the validators: what proposers received."""
    inputs.load("blocks", v1.load_produced_blocks, inputs.indices)
    blocks = inputs.get("blocks")
    if blocks is not None:
        span = pl.col("epoch").is_between(inputs.first, inputs.last)
        inputs.items["blocks"].rows = blocks.filter(span)


def _load_network(inputs: Inputs) -> None:
    """Load what the whole network earned and voted, to compare with."""
    first, last = _find_days(inputs)
    inputs.load("queue", v1.load_validator_queue)
    days = (inputs.last - inputs.first + 1) / inputs.chain.epochs_per_day
    if inputs.explorer.source.is_node and _is_too_large(inputs, days):
        reason = "a node would have to read the income of all validators"
        inputs.skip("index", v1.load_yield_index, reason)
    else:
        _load_index(inputs, since=first, until=last)
    latest = inputs.explorer.chain_head.latest("epoch", finalized=True)
    window = min(_WINDOWS, key=lambda name: abs(_WINDOWS[name] - days))
    if inputs.last < latest - inputs.chain.epochs_per_day:
        reason = "V2 has windows that end now, and the report ends earlier"
        inputs.skip("network", v2.load_network_performance, reason)
        inputs.skip("missed_rewards", v2.load_rewards_aggregate, reason)
        return
    if not inputs.has_epochs:
        inputs.skip("network", v2.load_network_performance, "late votes are not compared by day")
    elif _is_too_large(inputs, _WINDOWS[window]):
        reason = "this machine would have to add up the votes of all validators"
        inputs.skip("network", v2.load_network_performance, reason)
    else:
        inputs.load("network", v2.load_network_performance, window)
    _load_set(inputs, "missed_rewards", v2.load_rewards_aggregate, window)


def _load_index(inputs: Inputs, **days: Any) -> None:
    """Load the yield index: ten days per request of V2, if the key has V2, or one of V1."""
    if not has_quota(inputs.explorer):
        inputs.load("index", v1.load_yield_index, **days)
        return
    rows = inputs.load("index", v2.load_yield_index, **days)
    if isinstance(inputs.explorer, PlanningExplorer):
        inputs.explorer.assume_more("a key without V2 needs a request per day of the yield index")
        return
    found = inputs.items["index"]
    may_be_repeated = found.error is not None and found.error.retryable
    if inputs.spent is not None or may_be_repeated or (rows is not None and _is_index(rows)):
        return
    item = inputs.items["index"] = Input("index", "load_yield_index", requests=found.requests)
    needed = count_requests(inputs, lambda each: each.load("index", v1.load_yield_index, **days))
    left = count_left(inputs)
    if left is not None and needed > left:
        item.reason = f"without V2, it needs {format_requests(needed)}, and {left:,} are left"
    else:
        inputs.load("index", v1.load_yield_index, **days)


def _is_index(rows: pl.DataFrame) -> bool:
    """Return whether V2 sent what is compared: the names of its fields are not published."""
    return not any(rows.select("apr", "finality").null_count().row(0))


def _is_too_large(inputs: Inputs, days: float) -> bool:
    """Return whether the source is a dataset on this machine with too many votes to add up."""
    if not is_local(inputs.explorer):
        return False
    queue = inputs.get("queue")
    if isinstance(inputs.explorer, PlanningExplorer) and inputs.explorer.source.is_node:
        return True
    count = 0 if queue is None or queue.is_empty() else queue["validators_count"][0] or 0
    return bool(count * days * inputs.chain.epochs_per_day > _MOST_VOTES)


def _load_future(inputs: Inputs) -> None:
    """Load what is known of the future: committees, duties, queues."""
    inputs.head = inputs.explorer.chain_head.latest("epoch")
    period = inputs.explorer.chain_head.latest("period")
    inputs.load("committees", v1.load_sync_committees, [period])
    reason = "the source does not have the next sync committee"
    inputs.load("next_committees", v1.load_sync_committees, [period + 1], refused=reason)
    source = inputs.explorer.source
    earlier = [each for each in inputs.list_selected_periods() if each < period]
    # Each is a request, which a service may count.
    if earlier and inputs.has_epochs and is_local(inputs.explorer) and not source.is_node:
        inputs.load("selected_committees", v1.load_sync_committees, earlier)
    _load_set(inputs, "duties", v2.load_upcoming_duty_slots)


def _load_set(inputs: Inputs, name: str, load: Callable[..., Any], *arguments: Any) -> None:
    """Load a frame of V2 of all the validators, if a request takes as many."""
    if len(inputs.indices) <= _LARGEST_SET:
        inputs.load(name, load, inputs.indices, *arguments)
    else:
        inputs.skip(name, load, f"a set has up to {_LARGEST_SET} validators")
