"""Coverage of an index: the epochs of each table that are missing, and the tasks that add them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.beacon_node.tables import BLOCK_TABLES, INDEXED_TABLES, REWARD_TABLES
from beaconframes.dataset.coverage import MAX_UNIT
from beaconframes.intervals import clip_intervals, intervals_of, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset
    from beaconframes.intervals import Interval, Intervals

WHOLE_CHAIN = ""
"""The subject of rows of the whole chain."""


def add_companions(tables: Collection[str]) -> tuple[str, ...]:
    """Return *tables* with those that need no further request, in the order of writing."""
    found = set(tables)
    for together in (REWARD_TABLES, BLOCK_TABLES):
        if found & set(together):
            found |= set(together)
    return tuple(name for name in INDEXED_TABLES if name in found)


def find_units(unit: str, epoch: int, chain: Chain) -> tuple[int, int]:
    """Return the first and the last *unit* of an epoch: an epoch, a period or a slot."""
    if unit == "epoch":
        return epoch, epoch
    if unit == "period":
        period = epoch // chain.epochs_per_sync_period
        return period, period
    return chain.first_slot_of(epoch), chain.last_slot_of(epoch)


def find_epochs(unit: str, units: Iterable[Interval], chain: Chain) -> Intervals:
    """Return the epochs whose units are all among *units*."""
    if unit == "epoch":
        return tuple(units)
    if unit == "period":
        size = chain.epochs_per_sync_period
        return tuple((low * size, (high + 1) * size - 1) for low, high in units)
    size = chain.slots_per_epoch
    found = ((-(-low // size), (high + 1) // size - 1) for low, high in units)
    return tuple((low, high) for low, high in found if low <= high)


@dataclass(frozen=True)
class EpochTask:
    """The unit of work: the tables of one epoch, for some validators or for all (None)."""

    epoch: int
    tables: tuple[str, ...]
    validators: tuple[int, ...] | None


def find_tasks(
    dataset: Dataset,
    chain: Chain,
    tables: Collection[str],
    epochs: Iterable[int],
    validators: Collection[int] | None,
    starts: Mapping[str, int] | None = None,
) -> list[EpochTask]:
    """Return the tasks that complete *tables* of *dataset*, in the order of epochs.

    *starts* has the first epoch of each table that begins after others.
    """
    all_epochs = intervals_of(epochs)
    subjects = None if validators is None else [str(index) for index in validators]
    begins: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    ends: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name in tables:
        indexed = INDEXED_TABLES[name]
        requested = clip_intervals(all_epochs, (starts or {}).get(name, 0), MAX_UNIT)
        own = subjects if subjects is not None and indexed.by_validator else [WHOLE_CHAIN]
        covered = dataset.coverage(name, own)
        # Nearly all validators have the same intervals.
        groups: dict[Intervals, list[str]] = defaultdict(list)
        for subject in own:
            groups[covered.get(subject, ())].append(subject)
        for units, group in groups.items():
            part = name, tuple(group)
            stored = find_epochs(indexed.unit, units, chain)
            for first, last in subtract_intervals(requested, stored):
                begins[first].append(part)
                ends[last + 1].append(part)
    tasks: list[EpochTask] = []
    missing: list[tuple[str, tuple[str, ...]]] = []
    begin = 0
    for epoch in sorted({*begins, *ends}):
        tasks += _build_tasks(range(begin, epoch), missing, chosen=subjects is not None)
        for part in ends[epoch]:
            missing.remove(part)
        missing += begins[epoch]
        begin = epoch
    return tasks


def _build_tasks(
    epochs: range, missing: Sequence[tuple[str, tuple[str, ...]]], *, chosen: bool
) -> list[EpochTask]:
    """Return a task for each of *epochs*, all *missing* the same subjects of the same tables."""
    if not missing:
        return []
    names = {name for name, _ in missing}
    tables = tuple(name for name in INDEXED_TABLES if name in names)
    validators = {int(subject) for _, subjects in missing for subject in subjects if subject}
    found = tuple(sorted(validators)) if chosen else None
    return [EpochTask(epoch, tables, found) for epoch in epochs]
