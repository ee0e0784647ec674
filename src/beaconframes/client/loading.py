"""What every loader calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from beaconframes.client.connected import current

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Endpoint

Subjects: TypeAlias = int | str | Iterable[int | str]
"""One thing or many: an index, a public key, a list, range or Series of them, mixed."""


class Options(TypedDict, total=False):
    """What every loader takes besides its own arguments."""

    strict: bool
    """Raise `MissingRows` instead of warning.

    What did not come back is asked for once more first. If it lacks then between final rows where
    the chain cannot lack it, that is an `IntegrityError`, strict or not. Either error has all that
    did come back in ``rows``, and what did not in ``missing``.
    """
    lazy: bool
    """Return a `polars.LazyFrame` over the store, for what does not fit into memory.

    Rows of the store come first, and then those that are too young to be kept. Nothing is sorted.
    """
    max_requests: int
    """Raise `RequestLimitExceeded`, before the first request, for a call that takes more of them.

    Where nobody can know how many pages there are, it is raised when so many have come: see
    `beaconframes.plan`.
    """


def load(
    endpoint: Endpoint,
    explorer: Explorer | None,
    options: Mapping[str, Any],
    **values: Any,
) -> pl.DataFrame:
    """Return the rows of *endpoint* that *values* select, from *explorer* or the connected one."""
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(
            f"load_{endpoint.name}() takes no argument {min(unknown)!r}; "
            f"it takes {', '.join([*endpoint.arguments, 'explorer', *Options.__annotations__])}"
        )
    asked = explorer if explorer is not None else current()
    rows: pl.DataFrame = asked.load(endpoint, values, **options)
    return rows
