"""The head of a live chain, which follows the clock slot by slot."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint import Head
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.errors import UsageError
from beaconframes.v1.attestations import SERVED_EPOCHS

if TYPE_CHECKING:
    from beaconframes.dataset import Dataset

log = logging.getLogger("beaconframes.server")

MAX_SPEED = 10_000


class HeadClock:
    """The head of a simulated dataset at the present time; at the end of the dataset it stops."""

    def __init__(self, dataset: Dataset, *, start: int | None = None, speed: float = 1.0) -> None:
        """Start at the slot of the present time, or at the first slot of epoch *start*.

        The head then moves *speed* times as fast as the clock.
        """
        meta = dataset.meta
        metadata = ChainMetadata.parse(meta)
        self.chain, self.end = metadata.chain, metadata.head
        if not meta.get("simulated") or "first_epoch" not in meta:
            raise UsageError(
                f"{dataset.path} is not a simulated dataset, so it cannot be served live",
                hint='Create one with beaconframes simulate --ends "2026-12-31"',
            )
        if not 0 < speed <= MAX_SPEED:
            raise UsageError(
                f"speed={speed!r} is not valid", hint=f"Use a number above 0, up to {MAX_SPEED:,}"
            )
        self.finality_distance = self.end.epoch - self.end.finalized_epoch
        self.speed, self._started = speed, time.time()
        self._lock = threading.Lock()
        self._slot, self._has_ended = 0, False
        self._start_seconds = self._find_start(dataset, start)

    def _find_start(self, dataset: Dataset, start: int | None) -> float:
        """Return the seconds from genesis to the start."""
        chain, end = self.chain, self.end
        # An earlier head would have no final epoch.
        first = int(dataset.meta["first_epoch"]) + self.finality_distance
        duties = dataset.scan("attestations").select(pl.col("epoch").min()).collect().item()
        if duties is not None and duties > dataset.meta["first_epoch"]:
            first = max(first, duties + SERVED_EPOCHS)
        epoch_seconds = chain.slots_per_epoch * chain.seconds_per_slot
        seconds = self._started - chain.genesis.timestamp()
        if start is not None:
            seconds = float(start * epoch_seconds)
        if first * epoch_seconds <= seconds < (end.slot + 1) * chain.seconds_per_slot:
            return seconds
        moment = f"start={start}" if start is not None else "the present time"
        times = [f"{chain.time_of('epoch', epoch):%Y-%m-%d %H:%M}" for epoch in (first, end.epoch)]
        hint = "Pass start= (--start), an epoch of this range, or simulate a chain with a later end"
        raise UsageError(
            f"the dataset cannot be served live from {moment}: a live head can be in epochs "
            f"{first} to {end.epoch}, {times[0]} to {times[1]} UTC",
            hint=hint,
        )

    def now(self) -> datetime:
        """Return the time on the live chain."""
        return datetime.fromtimestamp(self.chain.genesis.timestamp() + self._seconds(), UTC)

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds* of the live chain."""
        time.sleep(seconds / self.speed)

    def _seconds(self) -> float:
        """Return the seconds since genesis on the live chain."""
        return self._start_seconds + (time.time() - self._started) * self.speed

    def head(self) -> Head:
        """Return the head of this moment; it never goes back."""
        slot = int(self._seconds() // self.chain.seconds_per_slot)
        with self._lock:
            self._slot = max(self._slot, min(slot, self.end.slot))
            if slot > self.end.slot and not self._has_ended:
                self._has_ended = True
                log.warning("the dataset ends at slot %d: the head stays there", self.end.slot)
            return self.head_at(self._slot)

    def head_at(self, slot: int) -> Head:
        """Return the head whose latest slot is *slot*."""
        epoch = slot // self.chain.slots_per_epoch
        return Head(epoch, epoch - self.finality_distance, slot)
