"""Derived tables of an index: growing ones are extended, the others are replaced.

The metadata has the coverage from which the growing tables follow. Where the index covers more or
less than that, and where epochs are not final, their rows are derived again.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.index.coverage import find_epochs
from beaconframes.beacon_node.tables import GROWING_TABLES, INDEXED_TABLES
from beaconframes.derive import derive_tables, find_obstacles
from beaconframes.derive.derivations import DERIVATIONS
from beaconframes.intervals import clip_intervals, merge_intervals, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from beaconframes.dataset import Dataset
    from beaconframes.derive import ChainTables
    from beaconframes.intervals import Intervals

SOURCES: Final = "derived_from"
SUBJECTS: Final = "validators"
RULES: Final = "rules"
RULES_VERSION: Final = 2
"""It grows when rows of growing tables follow in another way: then all are derived again."""


def write_derived_tables(dataset: Dataset, data: ChainTables) -> None:
    """Write all tables that follow from others: new rows of growing tables, all rows of others."""
    sources, obstacles = describe_sources(dataset, data), find_obstacles(data)
    growing = {name: unit for name, unit in GROWING_TABLES.items() if name not in obstacles}
    stored = dataset.tables()
    known = dataset.meta.get(SOURCES, {}) if growing.keys() <= stored.keys() else {}
    if data.days and "validator_stats" in stored and not stored["validator_stats"].rows:
        known = {}  # The first whole day: now the deposits of genesis are written too.
    changed = find_changes(known, sources)
    if data.head.epoch > data.head.finalized_epoch:
        changed.append(data.head.finalized_epoch + 1)
    derived = [each.table.table_name for each in DERIVATIONS]
    others = [name for name in derived if name not in GROWING_TABLES and name not in INDEXED_TABLES]
    dataset.replace_tables(dict(_derive(data, others)))
    if not changed or not growing:
        return
    first = min(changed)
    # Also the day that ends with the start of the epoch; day -1 has the deposits of genesis.
    day = (first - 1) // data.chain.epochs_per_day
    starts = {name: (unit, first if unit == "epoch" else day) for name, unit in growing.items()}
    epochs, days = range(first, data.head.epoch + 1), range(day, data.days_end)
    rows = (
        # The deposits of genesis alone are no statistics of a day.
        (name, frame if data.days or name != "validator_stats" else frame.clear())
        for name, frame in _derive(data, growing, epochs=epochs, days=days)
    )
    dataset.extend_tables(starts, rows, {SOURCES: sources})


def _derive(
    data: ChainTables, names: Iterable[str], **selection: range
) -> Iterator[tuple[str, pl.DataFrame]]:
    for table, rows in derive_tables(data, names=set(names), **selection):
        yield table.table_name, rows


def describe_sources(dataset: Dataset, data: ChainTables) -> dict[str, Any]:
    """Return the final epochs that each table covers, and a checksum of its validators."""
    sources: dict[str, Any] = {RULES: RULES_VERSION}
    for name in dataset.grids():
        indexed = INDEXED_TABLES.get(name)
        if indexed is None:
            continue
        covered = dataset.coverage(name)
        parts: Intervals = merge_intervals(part for units in covered.values() for part in units)
        epochs = data.coverage.tables.get(name, find_epochs(indexed.unit, parts, data.chain))
        sources[name] = [
            list(part) for part in clip_intervals(epochs, 0, data.head.finalized_epoch)
        ]
        if name == "balance_history":
            chosen = data.coverage.validators
            subjects = covered if chosen is None else map(str, chosen)
            sources[SUBJECTS] = zlib.crc32(",".join(sorted(subjects)).encode())
    return sources


def find_changes(known: Mapping[str, Any], sources: Mapping[str, Any]) -> list[int]:
    """Return the starts of the epochs of which *sources* have more or less than was *known*."""
    if any(known.get(name) != sources.get(name) for name in (SUBJECTS, RULES)):
        return [0]
    changed: list[int] = []
    for name in known.keys() | sources.keys():
        if name in {SUBJECTS, RULES}:
            continue
        old, new = ([tuple(part) for part in parts.get(name, ())] for parts in (known, sources))
        changed += [first for first, _ in subtract_intervals(new, old)]
        changed += [first for first, _ in subtract_intervals(old, new)]
    return changed
