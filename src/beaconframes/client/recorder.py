"""Recording: what a service forgets is loaded in time, again and again, and kept."""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache.preparation import prepare
from beaconframes.endpoint.cover import minus
from beaconframes.errors import (
    ConfigError,
    DatasetError,
    IntegrityError,
    MissingRows,
    ServiceError,
    UsageError,
)
from beaconframes.fetch.completeness import named
from beaconframes.fetch.gaps import KEYLESS, MUST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.cache.read_through import ReadThrough
    from beaconframes.client.explorer import Explorer
    from beaconframes.endpoint import Endpoint, Head

log = logging.getLogger("beaconframes.record")

MARGIN = 2
"""Epochs by which the service may be further on than it said a moment ago."""

TO_FINALITY = 3
"""Epochs after which an epoch is usually final."""

REPORT = pl.Schema(
    [
        ("validator_index", pl.Int64()),
        ("first_epoch", pl.Int64()),
        ("last_epoch", pl.Int64()),
        ("state", pl.Enum(["kept", "absent", "open", "lost"])),
    ]
)


class Clock:
    """The present, and waiting. Tests hand in one that runs faster."""

    def now(self) -> datetime:
        """Return the present."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass."""
        time.sleep(seconds)


@dataclass
class Recorder:
    """Polls what the service keeps for ``reach`` epochs, from one epoch to another.

    ``every`` is how many epochs lie between two polls, ``last`` the last epoch to record, None for
    no end.
    """

    explorer: Explorer
    endpoint: Endpoint
    values: Mapping[str, Any]
    reach: int
    every: int
    last: int | None
    clock: Clock
    first: int | None = None
    oldest: int = 0
    final: int = -1

    def __post_init__(self) -> None:
        """Refuse what would lose epochs, or could keep nothing."""
        if self.explorer.local_store is None or self.explorer.offline:
            raise ConfigError(
                f"{self.explorer!r} cannot record: it keeps nothing, or may not ask",
                hint="Connect with store=True, or with the folder to record into",
            )
        most = self.reach - MARGIN - TO_FINALITY
        if isinstance(self.every, bool) or not 1 <= self.every <= most:
            raise UsageError(
                f"every={self.every!r} epochs is none of 1 to {most}",
                hint=f"The service forgets after {self.reach} epochs; half of that leaves time "
                "to try again",
            )

    @property
    def local_store(self) -> LocalStore:
        """Return the store, which there is."""
        assert self.explorer.local_store is not None
        return self.explorer.local_store

    def run(self) -> pl.DataFrame:
        """Record until the end or Ctrl-C, and report."""
        try:
            while not self.done:
                self.clock.sleep(self.wait(asked=self.poll()))
        except KeyboardInterrupt:
            log.info("recording ends: interrupted")
        return self.report()

    @property
    def done(self) -> bool:
        """Whether all that was to be recorded is final and was asked for."""
        return self.last is not None and self.final >= self.last

    def poll(self) -> bool:
        """Load what is final and still served; return whether the service gave it."""
        try:
            self.explorer.look_again()
            head = self.explorer.chain_head.head()
            oldest, final = self.window(head)  # type: ignore[arg-type]
            if self.first is None:
                self.first = self.beginning(oldest)
            if final >= max(oldest, self.first):
                self.load(max(oldest, self.first), final)
            self.oldest, self.final = oldest, final
        except (ServiceError, IntegrityError) as error:
            if isinstance(error, ServiceError) and not error.retryable:
                raise
            log.warning("%s; it is tried again", error)
            return False
        return True

    def beginning(self, oldest: int) -> int:
        """Return the first epoch of the report: where an earlier recording began, if one did."""
        values = {**self.values, "since": 0, "until": oldest}
        kept, _ = prepare(self.explorer, self.local_store, self.endpoint, values)
        if kept is None or not kept.want.subjects:
            raise UsageError("there is nobody to record", hint="Name validators that exist")
        told = self.local_store.coverage(kept.table, kept.want.subjects, kept.want.parts)
        return min([oldest, *(parts[0][0] for parts in told.values())])

    def window(self, head: Head) -> tuple[int, int]:
        """Return the first epoch that is still served for certain, and the last to ask for."""
        known = self.explorer.chain_head.known is not None
        oldest = head.epoch - self.reach + 1 + (0 if known else MARGIN)
        final = min(head.finalized_epoch, head.epoch - 1)
        if self.last is not None:
            final = min(final, self.last)
        return max(oldest, 0), final

    def load(self, first: int, last: int) -> None:
        """Load a range, so that it is kept; what is missing of it is in the report."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingRows)
            self.explorer.load(
                self.endpoint, {**self.values, "since": first, "until": last}, lazy=True
            )
        log.info("recorded up to epoch %d", last)

    def wait(self, *, asked: bool) -> float:
        """Return the seconds until the next poll: sooner after one that failed."""
        if self.done:
            return 0.0
        chain = self.explorer.chain
        epoch = chain.slots_per_epoch * chain.seconds_per_slot
        if not asked:
            return float(epoch)
        goal = self.final + self.every
        if self.last is not None:
            goal = min(goal, self.last)
        at = chain.time_of("epoch", goal + TO_FINALITY)
        return max((at - self.clock.now()).total_seconds(), float(epoch))

    def report(self) -> pl.DataFrame:
        """Return which epochs of whom are kept or have nothing, can still be had, or are lost."""
        if self.first is None or self.final < self.first:
            return pl.DataFrame(schema=REPORT)
        values = {**self.values, "since": self.first, "until": self.final}
        kept, keyless = prepare(self.explorer, self.local_store, self.endpoint, values)
        assert kept is not None
        try:
            found = self.told(kept)
        except DatasetError:
            # What was damaged is forgotten by now, and told as what did not come.
            found = self.told(kept)
        absent = found.filter(state="absent").drop("state")
        if keyless:
            absent = pl.concat([absent, pl.DataFrame({KEYLESS: [keyless]})], how="diagonal")
        if not absent.is_empty():
            self.warn(absent)
        return found

    def told(self, kept: ReadThrough) -> pl.DataFrame:
        """Return every run of epochs; one that is complete and yet without a row is absent."""
        found = pl.DataFrame(list(self.states(kept)), schema=REPORT, orient="row")
        found = found.sort("validator_index", "first_epoch")
        rows = kept.select().rows.select("validator_index", "epoch").sort("epoch").collect()
        there = rows.join_asof(
            found.select("validator_index", "first_epoch").sort("first_epoch"),
            left_on="epoch", right_on="first_epoch", by="validator_index", check_sortedness=False,
        )  # fmt: skip
        key = pl.struct("validator_index", "first_epoch")
        empty = ~key.is_in(there.select(key).unique().to_series().implode())
        absent = pl.lit("absent", REPORT["state"])
        state = pl.when(empty, state="kept").then(absent).otherwise("state")
        return found.with_columns(state.alias("state"))

    def warn(self, absent: pl.DataFrame) -> None:
        """Warn of those of whom the service has told nothing at all."""
        warning = MissingRows(
            f"has nothing of: {named(absent.with_columns(pl.lit(value=False).alias(MUST)))}",
            endpoint=self.endpoint.route,
            hint="Name validators that exist and are active; those that were not yet, record later",
        )
        warning.missing = absent
        warnings.warn(warning, stacklevel=4)

    def states(self, kept: ReadThrough) -> Iterator[tuple[int, int, int, str]]:
        """Yield every run of epochs of each validator, and what has become of it."""
        missing = kept.missing()
        for subject in kept.want.subjects:
            lacking = missing.get(subject, ())
            for first, last in minus(kept.want.parts, lacking):
                yield int(subject), first, last, "kept"
            for first, last in lacking:
                if first < self.oldest:
                    yield int(subject), first, min(last, self.oldest - 1), "lost"
                if last >= self.oldest:
                    yield int(subject), max(first, self.oldest), last, "open"
