"""The efficiency of attestations over the last epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beaconframes.derive.chain_tables import ChainTables
    from beaconframes.endpoint import Head

RATED_EPOCHS: Final = 100
"""Epochs before the current one whose duties the service rates."""

_CHUNK_ROWS: Final = 2**23


def find_rated_epochs(head: Head) -> range:
    """Return the epochs whose duties are rated: the last hundred before the current one."""
    return range(max(head.epoch - RATED_EPOCHS, 0), head.epoch)


def build_attestation_efficiency(data: ChainTables) -> pl.DataFrame:
    """Return the efficiency of the validators with duties; no rows unless all are covered."""
    epochs = find_rated_epochs(data.head)
    if not data.coverage.covers("attestations", epochs):
        epochs = range(0)
    return compute_efficiency(_read_duties(data, epochs))


def compute_efficiency(duties: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return 2 minus the mean of 1 / delay of *duties* (0 for a miss), one row per validator.

    The frames have duties of later and later epochs. A duty that a block can still include does
    not count.
    """
    total, count = np.zeros(0), np.zeros(0, np.int64)
    for rows in duties:
        rated = rows.filter(pl.col("status") != "pending")
        delay = rated["inclusion_slot"].fill_null(0).to_numpy() - rated["attester_slot"].to_numpy()
        score = np.divide(1, delay, out=np.zeros(len(delay)), where=delay > 0)
        validator = rated["validator_index"].to_numpy()
        size = max(len(count), int(validator.max(initial=-1)) + 1)
        total = np.pad(total, (0, size - len(total))) + np.bincount(validator, score, size)
        count = np.pad(count, (0, size - len(count))) + np.bincount(validator, minlength=size)
    validators = np.flatnonzero(count)
    mean = total[validators] / count[validators]
    return pl.DataFrame({"validator_index": validators, "attestation_efficiency": 2 - mean})


def _read_duties(data: ChainTables, epochs: range) -> Iterator[pl.DataFrame]:
    """Yield the duties of *epochs*, some epochs at a time."""
    columns = ["validator_index", "epoch", "attester_slot", "inclusion_slot", "status"]
    rows = data.scan("attestations").select(columns)
    size = max(1, _CHUNK_ROWS // max(1, data.validators.height))
    for first in epochs[::size]:
        part = rows.filter(
            pl.col("epoch").is_between(first, min(first + size, epochs.stop), closed="left")
        )
        yield part.collect().sort("epoch", maintain_order=True)
