"""Loading beside a store: which calls can be kept, and what becomes of those that cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.client.gaps import KEYLESS, MUST
from beaconframes.client.keeping import Kept
from beaconframes.client.keys import resolve
from beaconframes.endpoint.keeping import Keeping
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from beaconframes.client.explorer import Explorer
    from beaconframes.client.loaded import Loaded
    from beaconframes.client.shelf import Shelf
    from beaconframes.endpoint import Endpoint


def from_store(
    explorer: Explorer, shelf: Shelf, endpoint: Endpoint, values: Mapping[str, Any]
) -> Loaded | None:
    """Return what *values* select, asking for what the store lacks.

    None if nothing of it is kept, or what is kept cannot be used.
    """
    kept, keyless = prepare(explorer, shelf, endpoint, values)
    if kept is None:
        return None
    try:
        found = kept.load()
    except DatasetError as error:
        if explorer.offline:
            raise
        shelf.distrust(error)
        return None
    if keyless:
        unknown = pl.DataFrame({KEYLESS: [keyless], MUST: [False]})
        found.lost = pl.concat([found.lost, unknown], how="diagonal")
    return found


def prepare(
    explorer: Explorer,
    shelf: Shelf,
    endpoint: Endpoint,
    values: Mapping[str, Any],
    indices: Callable[[Explorer, Shelf, Sequence[str]], dict[str, int]] = resolve,
) -> tuple[Kept | None, int]:
    """Return the call whose rows can be kept, if they can, and how many keys nobody has.

    *indices* finds the index of each public key.
    """
    keeping = Keeping.of(endpoint)
    horizon = explorer.horizon_of(endpoint)
    table = keeping.table(values, horizon) if keeping else None
    want = keeping.want(values, horizon) if keeping and table else None
    if keeping is None or table is None or want is None:
        return None, 0
    keyless = 0
    if want.keys:
        # Rows do not say keys, so that they are kept and asked for by index.
        known = indices(explorer, shelf, want.keys)
        keyless = len(want.keys) - len(known)
        named = dict.fromkeys([*want.subjects, *map(str, known.values())])
        want = replace(want, subjects=tuple(named), keys=())
    return Kept(explorer, shelf, keeping, table, want, values), keyless
