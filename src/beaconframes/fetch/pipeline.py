"""Loading without a store: everything is asked for, and what lacks once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.errors import ResponseError, ServiceError, UsageError
from beaconframes.fetch.completeness import checked, new_in, only_asked
from beaconframes.fetch.gaps import gaps
from beaconframes.fetch.refetch import again
from beaconframes.fetch.result import LoadResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Endpoint


def fresh(explorer: Explorer, endpoint: Endpoint, values: Mapping[str, Any]) -> LoadResult:
    """Return what *values* select, all of it asked for."""
    chain_head = explorer.chain_head_of(endpoint)
    calls, rows, denied, notices = explorer.asking.ask(endpoint, [values], chain_head)
    rows = checked(endpoint, calls, rows)
    lost = gaps(endpoint, calls, rows, chain_head)
    for asked in again(endpoint, calls, denied, lost):
        if not asked:
            continue
        try:
            more = explorer.asking.ask(endpoint, [{**values, **part} for part in asked], chain_head)
        except (UsageError, ServiceError, ResponseError):
            # What came before is worth more; what is still lost is named below.
            break
        found = only_asked(endpoint, more.calls, more.rows)
        found = new_in(endpoint.table.key(), found, rows)
        if found.is_empty():
            break
        rows = endpoint.table.arrange(rows.vstack(found))
        lost = gaps(endpoint, calls, rows, chain_head)
    return LoadResult(rows, lost, notices)
