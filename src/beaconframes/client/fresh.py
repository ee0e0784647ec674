"""Loading without a store: everything is asked for, and what lacks once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.client.again import again
from beaconframes.client.completeness import checked, new_in, only_asked
from beaconframes.client.gaps import gaps
from beaconframes.client.loaded import Loaded
from beaconframes.errors import AnswerError, ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Endpoint


def fresh(explorer: Explorer, endpoint: Endpoint, values: Mapping[str, Any]) -> Loaded:
    """Return what *values* select, all of it asked for."""
    horizon = explorer.horizon_of(endpoint)
    calls, rows, denied, notices = explorer.asking.ask(endpoint, [values], horizon)
    rows = checked(endpoint, calls, rows)
    lost = gaps(endpoint, calls, rows, horizon)
    for asked in again(endpoint, calls, denied, lost):
        if not asked:
            continue
        try:
            more = explorer.asking.ask(endpoint, [{**values, **part} for part in asked], horizon)
        except (UsageError, ServiceError, AnswerError):
            # What came before is worth more; what is still lost is named below.
            break
        found = only_asked(endpoint, more.calls, more.rows)
        found = new_in(endpoint.table.key(), found, rows)
        if found.is_empty():
            break
        rows = endpoint.table.arrange(rows.vstack(found))
        lost = gaps(endpoint, calls, rows, horizon)
    return Loaded(rows, lost, notices)
