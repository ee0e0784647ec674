"""Loading beside a store: which calls can be kept, and what becomes of those that cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache.pubkey_index import resolve
from beaconframes.cache.read_through import ReadThrough
from beaconframes.endpoint.cache_policy import CachePolicy
from beaconframes.errors import DatasetError
from beaconframes.fetch.gaps import KEYLESS, MUST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Endpoint
    from beaconframes.fetch.result import LoadResult


def from_store(
    explorer: Explorer, local_store: LocalStore, endpoint: Endpoint, values: Mapping[str, Any]
) -> LoadResult | None:
    """Return what *values* select, asking for what the store lacks.

    None if nothing of it is kept, or what is kept cannot be used.
    """
    kept, keyless = prepare(explorer, local_store, endpoint, values)
    if kept is None:
        return None
    try:
        found = kept.load()
    except DatasetError as error:
        if explorer.offline:
            raise
        local_store.distrust(error)
        return None
    if keyless:
        unknown = pl.DataFrame({KEYLESS: [keyless], MUST: [False]})
        found.lost = pl.concat([found.lost, unknown], how="diagonal")
    return found


def prepare(
    explorer: Explorer,
    local_store: LocalStore,
    endpoint: Endpoint,
    values: Mapping[str, Any],
    indices: Callable[[Explorer, LocalStore, Sequence[str]], dict[str, int]] = resolve,
) -> tuple[ReadThrough | None, int]:
    """Return the call whose rows can be kept, if they can, and how many keys nobody has.

    *indices* finds the index of each public key.
    """
    keeping = CachePolicy.of(endpoint)
    chain_head = explorer.chain_head_of(endpoint)
    table = keeping.table(values, chain_head) if keeping else None
    want = keeping.want(values, chain_head) if keeping and table else None
    if keeping is None or table is None or want is None:
        return None, 0
    keyless = 0
    if want.keys:
        # Rows do not say keys, so that they are kept and asked for by index.
        known = indices(explorer, local_store, want.keys)
        keyless = len(want.keys) - len(known)
        named = dict.fromkeys([*want.subjects, *map(str, known.values())])
        want = replace(want, subjects=tuple(named), keys=())
    return ReadThrough(explorer, local_store, keeping, table, want, values), keyless
