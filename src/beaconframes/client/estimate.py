"""What a call will cost: its requests and rows, counted without sending any of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache.finality import is_doubtful, knows_final, told
from beaconframes.cache.preparation import prepare
from beaconframes.cache.pubkey_index import AT_ONCE, known_of
from beaconframes.endpoint import Cursor, Envelope, Pages, Parameter
from beaconframes.endpoint.cursor import PAGE_SIZE
from beaconframes.endpoint.identifiers import LARGEST_INDEX
from beaconframes.errors import DatasetError, RequestLimitExceeded
from beaconframes.fetch.head import Views
from beaconframes.fetch.request_limit import BUDGET, Budget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.cache.read_through import ReadThrough
    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Call, Endpoint

PAGES = "how many pages there are is not known before the last one"


@dataclass(frozen=True)
class Cost:
    """What one endpoint is asked for in a call of a loader.

    ``rows`` are those that are asked for, ``kept`` those that are in the store, each None where
    nobody can know; ``plain`` is what it would take without a store, and ``lookups`` the requests
    that bring no rows. ``more`` and ``less`` say why
    it may turn out to be more or fewer requests.
    """

    requests: int
    rows: int | None
    kept: int | None = 0
    plain: int = 0
    lookups: int = 0
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()


@contextmanager
def limited(
    explorer: Explorer, endpoint: Endpoint, values: Mapping[str, Any], most: int | None
) -> Iterator[None]:
    """Let the block send *most* requests; raise RequestLimitExceeded at once if that cannot do."""
    if most is None:
        yield
        return
    cost = cost_of(explorer, endpoint, values)
    if cost.requests > most:
        least = "at least " if cost.more else ""
        raise RequestLimitExceeded(
            f"this takes {least}{cost.requests:,} requests, and max_requests={most:,}; "
            "nothing was sent for it",
            endpoint=endpoint.route,
            hint="Ask for less, or for all of it with a larger max_requests; "
            "bf.plan(loader, ...) tells what a call takes",
        )
    token = BUDGET.set(Budget(most - cost.lookups))
    try:
        yield
    finally:
        BUDGET.reset(token)


def cost_of(explorer: Explorer, endpoint: Endpoint, values: Mapping[str, Any]) -> Cost:
    """Return what it costs to load what *values* select, asking where the chain ends at most."""
    local_store = explorer.local_store
    if local_store is not None:
        strangers = UnresolvedPubkeys()
        kept, _ = prepare(explorer, local_store, endpoint, values, strangers.resolve)
        if kept is not None:
            return cost_beside(kept, explorer, strangers)
    if explorer.offline:
        return Cost(0, None)
    return cost_of_calls(explorer, endpoint, [values])


def cost_of_calls(
    explorer: Explorer, endpoint: Endpoint, asked: Sequence[Mapping[str, Any]]
) -> Cost:
    """Return what it costs to ask for what is *asked*, whatever is in the store."""
    chain_head, allowance = explorer.chain_head_of(endpoint), explorer.asking.allowance
    calls = explorer.asking.calls(endpoint, asked, chain_head, public=False)
    parts = [part for call in calls for part in endpoint.parts(call, allowance.at_once)]
    counts = [pages_of(endpoint, part) for part in parts]
    more = [] if all(sure for _, sure in counts) else [PAGES]
    if not allowance.known and any(
        len(endpoint.parts(part, allowance.least)) > 1 for part in parts
    ):
        more.append(
            "the service has not said yet whether one request may name "
            f"{allowance.at_once} validators"
        )
    rows = rows_of(endpoint, calls)
    requests = sum(number for number, _ in counts)
    return Cost(requests, rows, plain=requests, more=tuple(more))


def cost_beside(kept: ReadThrough, explorer: Explorer, strangers: UnresolvedPubkeys) -> Cost:
    """Return what it costs to load what is not in the store."""
    endpoint, chain_head = kept.endpoint, kept.chain_head
    kept.local_store.fit(kept.table, endpoint.table.schema())
    try:
        missing, there = kept.missing(), height(kept)
    except DatasetError:
        # What was damaged has been forgotten by now.
        missing, there = kept.missing(), height(kept)
    lacking = cells(kept, missing)
    if explorer.offline:
        return Cost(0, 0, there)
    asked = kept.keeping.asking(missing, kept.values, chain_head)
    cost = cost_of_calls(explorer, endpoint, asked)
    plain = cost_of_calls(explorer, endpoint, [plainly(kept)]).requests if there else cost.requests
    lookups = strangers.requests
    if missing:
        lookups += finality(kept, max(parts[-1][1] for parts in missing.values()))
    requests = cost.requests + lookups
    return Cost(requests, lacking, there, max(plain, requests), lookups, cost.more, strangers.less)


def plainly(kept: ReadThrough) -> Mapping[str, Any]:
    """Return the arguments of the whole call, by index instead of by key."""
    if kept.keeping.subject is None:
        return kept.values
    (arg,) = kept.keeping.subject.arguments()
    return {**kept.values, arg: [int(subject) for subject in kept.want.subjects]}


def finality(kept: ReadThrough, last: int) -> int:
    """Learn now what is final, as the call would; return the requests that this leaves to it.

    Generation 2 tells the latest and the finalized slot one at a time: where the plan has asked
    for the one already, the other is left to the call. So is the second answer that is needed for
    what is young.
    """
    end = kept.chain_head.head() if kept.endpoint.envelope is Envelope.V2 else None
    if isinstance(end, Views) and end.knows("latest") and not end.knows("finalized"):
        if knows_final(kept, last):
            return 0
        return 2 if is_doubtful(kept, last) else 1
    return 1 if is_doubtful(kept, last, told(kept, last)) else 0


def height(kept: ReadThrough) -> int:
    """Return how many of the wanted rows are in the store."""
    found = kept.select()
    if found.height is not None:
        return found.height
    return int(found.rows.select(pl.len()).collect().item())


def cells(kept: ReadThrough, missing: Mapping[str, Any]) -> int | None:
    """Return how many rows lack, where there is one for each subject and unit."""
    want, grid = kept.want, kept.grid
    pubkey = getattr(kept.keeping.subject, "pubkey", None)
    part, parts_each = want.per_unit or (None, 1)
    by_key = {grid.subject, grid.unit, part, pubkey.name if pubkey is not None else None}
    units: int = sum(last - first + 1 for parts in missing.values() for first, last in parts)
    if units and not (want.every and set(grid.key) <= by_key):
        return None
    return units * parts_each


def pages_of(endpoint: Endpoint, call: Call) -> tuple[int, bool]:
    """Return how many pages *call* has, or at least has, and whether that is certain."""
    paging = endpoint.pagination
    if paging is None or type(paging).follow is Parameter.follow:
        return 1, True
    records = rows_of(endpoint, [call])
    if records is None:
        return 1, False
    if isinstance(paging, Pages):
        # The last page is the first that is not full.
        return records // paging.at_most + 1, True
    if isinstance(paging, Cursor) and paging.sized:
        return max(-(-records // PAGE_SIZE), 1), True
    return 1, False


def rows_of(endpoint: Endpoint, calls: Iterable[Call]) -> int | None:
    """Return how many rows *calls* ask for; None unless they name the whole key of each."""
    found = 0
    for call in calls:
        named: set[str] = set()
        for wanted in call.wanted:
            if not wanted.every or wanted.trim:
                return None
            named |= {*wanted.values, *([wanted.parts[0]] if wanted.parts else [])}
        if not set(endpoint.table.key()) <= named:
            return None
        found += prod(
            (sum(map(len, wanted.values.values())) + len(wanted.unnamed))
            * (wanted.parts[1] if wanted.parts else 1)
            for wanted in call.wanted
        )
    return found


class UnresolvedPubkeys:
    """Public keys whose index is not known yet; somebody unknown stands in for each."""

    def __init__(self) -> None:
        self.requests = 0
        self.less: tuple[str, ...] = ()

    def resolve(
        self, explorer: Explorer, local_store: LocalStore, keys: Sequence[str]
    ) -> dict[str, int]:
        """Return the index of each of *keys*, made up where it is not in the store."""
        known = known_of(local_store, keys)
        unknown = [key for key in keys if key not in known]
        if explorer.offline or not unknown:
            return known
        self.requests = -(-len(unknown) // AT_ONCE)
        why = f"of {len(unknown)} public keys neither the index nor what is kept is known yet"
        self.less = (why,)
        if local_store.finalized < 0:
            explorer.chain_head.latest("epoch", finalized=True)
        return known | {key: LARGEST_INDEX - n for n, key in enumerate(unknown)}
