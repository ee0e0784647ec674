"""Estimates: the requests and rows of a load, counted without sending a request."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from beaconframes.active_periods import FAR, Lifetime, find_periods
from beaconframes.cache.pubkey_index import BATCH_LIMIT, stored_indices
from beaconframes.cache.read_through import open_rows
from beaconframes.cache.validator_epochs import ExplorerWithStore
from beaconframes.endpoint import Envelope
from beaconframes.endpoint.identifiers import LARGEST_INDEX
from beaconframes.errors import DatasetError, RequestLimitExceeded
from beaconframes.fetch.completeness import Requirement
from beaconframes.fetch.gap_reasons import VALIDATOR
from beaconframes.fetch.head import HeadV2
from beaconframes.fetch.served_range import ServedRange
from beaconframes.fetch.source import plan_calls
from beaconframes.intervals import count_numbers
from beaconframes.load_context import change_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.cache.read_through import ReadThrough
    from beaconframes.cache.validator_epochs import ValidatorEpochsCache
    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.fetch.source import Connection, RequestEstimate
    from beaconframes.intervals import Intervals


class EstimatedExplorer(ExplorerWithStore, Protocol):
    """An explorer, as far as estimates need it."""

    validator_epochs: ValidatorEpochsCache
    """The activity epochs of validators."""


@dataclass(frozen=True)
class Estimate:
    """The requests and rows of one load.

    ``rows`` are to be fetched and ``stored_rows`` are in the store, each None if unknown.
    ``requests_without_store`` is the number of requests of the same load without a store,
    ``lookups`` the part of ``requests`` that returns no rows. ``may_be_more`` and ``may_be_less``
    are the reasons why the number of requests may differ. ``head_first`` is the range whose end the
    load compares with the chain head first; ``requests`` does not count that request. ``transfer``
    is what the source itself states, which has bytes and seconds if it is a node.
    """

    requests: int
    rows: int | None
    stored_rows: int | None = 0
    requests_without_store: int = 0
    lookups: int = 0
    may_be_more: tuple[str, ...] = ()
    may_be_less: tuple[str, ...] = ()
    head_first: ServedRange | None = None
    transfer: RequestEstimate | None = None


@contextmanager
def limit_requests(
    explorer: EstimatedExplorer, endpoint: Endpoint, values: Mapping[str, Any], most: int
) -> Iterator[None]:
    """Limit the block to *most* requests; raise RequestLimitExceeded first if it needs more."""
    estimate = estimate_load(explorer, endpoint, values)
    if estimate.requests > most:
        least = "at least " if estimate.may_be_more else ""
        raise RequestLimitExceeded(
            f"this load needs {least}{estimate.requests:,} requests, but max_requests={most:,}; "
            "none of them was sent",
            endpoint=endpoint.route,
            hint="Request less, or raise max_requests. bf.plan(loader, ...) estimates a load",
        )
    limit = explorer.source.limit_requests(most - estimate.lookups)
    with change_load(request_limit=limit):
        yield


def estimate_load(
    explorer: EstimatedExplorer, endpoint: Endpoint, values: Mapping[str, Any]
) -> Estimate:
    """Return the estimate for a load; sends no request, except for the chain head."""
    store = explorer.local_store
    if store is not None:
        unresolved = UnresolvedPubkeys()
        load = open_rows(explorer, store, endpoint, values, resolve=unresolved.resolve)
        if load is not None:
            return estimate_with_store(load, explorer, unresolved)
    if explorer.offline:
        return Estimate(0, None)
    return estimate_requests(explorer, endpoint, values, [values])


def estimate_requests(
    explorer: EstimatedExplorer,
    endpoint: Endpoint,
    values: Mapping[str, Any],
    arguments: Sequence[Mapping[str, Any]],
) -> Estimate:
    """Return the estimate for fetching the rows of *arguments*, a part of *values*."""
    chain_head = explorer.chain_head_of(endpoint)
    calls = plan_calls(endpoint, arguments, chain_head)
    served = ServedRange(endpoint, chain_head, values)
    found = explorer.source.estimate(endpoint, calls)
    rows = endpoint.count_rows(calls)
    if found.unavailable:
        rows = None
    elif found.has_stored:
        rows = None if found.requests else 0
    without_store = found.requests_without_store
    return Estimate(
        found.requests,
        rows - count_inactive(explorer, endpoint, calls) if rows else rows,
        stored_rows=None if found.has_stored else 0,
        requests_without_store=found.requests if without_store is None else without_store,
        may_be_more=found.may_be_more,
        may_be_less=found.may_be_less,
        head_first=served if served.needs_head(calls) else None,
        transfer=found,
    )


def count_inactive(explorer: EstimatedExplorer, endpoint: Endpoint, calls: Sequence[Call]) -> int:
    """Return how many requested rows cannot exist, as far as an earlier load has shown."""
    lifetime, requested = endpoint.lifetime, Requirement.of_calls(endpoint, calls)
    if lifetime is None or requested.subjects is None or requested.units is None:
        return 0
    ((unit, numbers),) = requested.units.values.items()
    indices = requested.subjects.values.get(VALIDATOR, set())
    if unit != "epoch" or not indices:
        return 0
    validators = explorer.validator_epochs.known(indices, max(numbers))
    if validators.is_empty():
        return 0
    chain, count = explorer.chain_head_of(endpoint).chain, 0
    periods = find_periods(validators, lifetime, "epoch", chain)
    if lifetime is Lifetime.BALANCE:  # Afterwards, rows of balances of 0 need not exist, but do.
        periods = periods.with_columns(end=FAR)
    for call in calls:
        values = Requirement.of_calls(endpoint, [call])
        assert values.subjects is not None
        assert values.units is not None
        first, last = min(values.units.values[unit]), max(values.units.values[unit])
        of_call = pl.col(VALIDATOR).is_in(list(values.subjects.values[VALIDATOR]))
        active = pl.min_horizontal("end", last) - pl.max_horizontal("start", first) + 1
        absent = (last - first + 1 - active.clip(0)).sum()
        count += periods.filter(of_call).select(absent).item()
    return count


def estimate_with_store(
    load: ReadThrough, explorer: EstimatedExplorer, unresolved: UnresolvedPubkeys
) -> Estimate:
    """Return the estimate for fetching the rows that are not stored."""
    endpoint = load.endpoint
    load.store.drop_outdated(load.table, endpoint.table.schema())
    try:
        missing, stored = load.find_unstored(), count_stored(load)
    except DatasetError:
        # The first attempt removed the damaged rows.
        missing, stored = load.find_unstored(), count_stored(load)
    rows = count_missing(load, missing)
    if explorer.offline:
        return Estimate(0, 0, stored)
    arguments = load.policy.fetch_arguments(missing, load.values, load.chain_head)
    lookups = unresolved.requests
    if missing:
        last = max(intervals[-1][1] for intervals in missing.values())
        lookups += count_finality_requests(load, last)
    estimate = estimate_requests(explorer, endpoint, load.values, arguments)
    without_store = estimate.requests
    if stored:
        values = load.values
        if load.policy.subject is not None:
            # By index instead of by public key.
            (arg,) = load.policy.subject.arguments()
            values = {**values, arg: [int(subject) for subject in load.requested.subjects]}
        without_store = estimate_requests(explorer, endpoint, values, [values]).requests
    requests = estimate.requests + lookups
    return Estimate(
        requests,
        rows,
        stored,
        max(without_store, requests),
        lookups,
        estimate.may_be_more,
        unresolved.may_be_less,
        estimate.head_first,
    )


def count_finality_requests(load: ReadThrough, last: int) -> int:
    """Request the last final epoch, as the load would; return the number of requests still needed.

    V2 reports the latest and the finalized slot in separate responses. If the estimate requested
    one of them, the load requests the other, and the second response for young epochs.
    """
    if load.is_known_final(last):
        return 0
    end = load.chain_head.head() if load.endpoint.envelope is Envelope.V2 else None
    if isinstance(end, HeadV2) and end.is_fresh("latest") and not end.is_fresh("finalized"):
        return 2 if load.needs_second_response(last) else 1
    if not load.needs_second_response(last):
        load.connection.request_head(load.chain_head)
        return 0
    return 1 if load.needs_second_response(last, load.stated_final_epoch(last)) else 0


def count_stored(load: ReadThrough) -> int:
    """Return the number of requested rows that are stored."""
    selection = load.select()
    if selection.height is not None:
        return selection.height
    return int(selection.rows.select(pl.len()).collect().item())


def count_missing(load: ReadThrough, missing: Mapping[str, Intervals]) -> int | None:
    """Return the number of missing rows; None unless each subject has one row in each unit."""
    requested, grid = load.requested, load.grid
    subject = load.policy.subject
    pubkey = None if subject is None else subject.pubkey_column
    part, part_count = requested.parts or (None, 1)
    columns = {grid.subject, grid.unit, part, None if pubkey is None else pubkey.name}
    units: int = sum(map(count_numbers, missing.values()))
    if units and not (requested.required and set(grid.key) <= columns):
        return None
    return units * part_count


class UnresolvedPubkeys:
    """Public keys whose index is unknown; each gets an unused index as a placeholder."""

    def __init__(self) -> None:
        self.requests = 0
        self.may_be_less: tuple[str, ...] = ()

    def resolve(
        self, explorer: Connection, store: LocalStore, pubkeys: Sequence[str]
    ) -> dict[str, int]:
        """Return the index of each of *pubkeys*; a placeholder if it is not stored."""
        known = stored_indices(store, pubkeys)
        unknown = [key for key in pubkeys if key not in known]
        if explorer.offline or not unknown:
            return known
        self.requests = -(-len(unknown) // BATCH_LIMIT)
        reason = (
            f"{len(unknown)} public keys have no stored index, so their stored rows are unknown"
        )
        self.may_be_less = (reason,)
        if store.finalized < 0:
            explorer.request_head(explorer.chain_head)
        return known | {key: LARGEST_INDEX - n for n, key in enumerate(unknown)}
