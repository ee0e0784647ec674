"""The recorder: it stores attestation duties before the service drops them."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from time import sleep
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache.read_through import open_rows
from beaconframes.client import Explorer, Subjects
from beaconframes.client.connection import get_explorer
from beaconframes.endpoint.chain_head import EPOCHS_TO_FINALITY
from beaconframes.errors import (
    ConfigError,
    DatasetError,
    IntegrityError,
    MissingRows,
    ServiceError,
    UsageError,
)
from beaconframes.intervals import subtract_intervals
from beaconframes.time_range import instants, resolve_span
from beaconframes.v1.attestations import ATTESTATIONS, SERVED_EPOCHS

if TYPE_CHECKING:
    from beaconframes.cache.local_store import LocalStore
    from beaconframes.cache.read_through import ReadThrough
    from beaconframes.calendar import Chain

log = logging.getLogger("beaconframes.record")

MARGIN_EPOCHS = 2
"""Epochs by which the service may be ahead of the head that it reported."""

NO_LAST_EPOCH = 2**62
"""Last epoch of a recording without an end."""

LOAD_INTERVAL_EPOCHS = 48
"""Epochs between two loads: about five hours, which leaves another five hours for retries."""

REPORT = {
    "validator_index": pl.Int64(),
    "first_epoch": pl.Int64(),
    "last_epoch": pl.Int64(),
    "state": pl.Enum(["stored", "absent", "pending", "lost"]),
}


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def record(
    what: str,
    validators: Subjects,
    *,
    until: int | str | date | datetime | None = None,
    for_: str | timedelta | None = None,
    slim: bool = False,
    explorer: Explorer | None = None,
) -> pl.DataFrame:
    """Record attestation duties in the store, one row per validator and interval of epochs.

    The service keeps attestation duties for 100 epochs, about ten hours. This function loads them
    at intervals and stores the final ones; `load_attestations` then reads them, for any range. It
    returns at *until*, after *for_*, or on Ctrl-C. A later call resumes the recording.

    Parameters
    ----------
    what
        ``"attestations"``: the service keeps all other data permanently.
    validators
        Indices or public keys: one, or a list, range or Series of them.
    until
        Last epoch, or a future time or date. Default: no end.
    for_
        Duration, such as ``"7d"``, instead of *until*.
    slim
        Whether to leave out ``committee_index``, which halves the bytes; see `load_attestations`.
    explorer
        The explorer to record from; it needs a store. Default: that of ``bf.connect``.

    Returns
    -------
    polars.DataFrame
        ``validator_index, first_epoch, last_epoch, state``. States: ``stored``; ``absent`` is
        a validator without rows; ``pending`` is not stored yet, but still served, so that a later
        call can store it; ``lost`` is no longer served. Epochs that are not final are not listed.

    Notes
    -----
    Failed requests are retried after an epoch. Errors that a retry cannot resolve (an invalid key,
    a spent monthly quota) are raised; rows recorded before stay in the store.
    """
    if what != "attestations":
        raise UsageError(
            f"{what!r} cannot be recorded",
            hint='Only "attestations" can: the service keeps all other data',
        )
    used_explorer = get_explorer(explorer)
    if used_explorer.local_store is None or used_explorer.offline:
        raise ConfigError(
            "attestations cannot be recorded: the explorer has no store, or is offline",
            hint="Connect with store=True, or with the folder to record into. Of your own node, "
            "bf.index and bf.follow store them",
        )
    recorder = Recorder(
        used_explorer,
        used_explorer.local_store,
        {"validators": validators, "slim": slim},
        last_epoch(used_explorer.chain, until, for_, read_time(used_explorer)),
    )
    try:
        while not recorder.is_done:
            recorder.wait(is_loaded=recorder.load())
    except KeyboardInterrupt:
        log.info("recording ends: interrupted")
    return recorder.report()


def read_time(explorer: Explorer) -> datetime:
    """Return the current time; that of a live local explorer may be another one."""
    return now() if explorer.clock is None else explorer.clock.now()


def last_epoch(chain: Chain, until: Any, for_: Any, present: datetime) -> int:
    """Return the last epoch to record."""
    if until is not None and for_ is not None:
        raise UsageError("until= and for_= are both given", hint="Pass one of them")
    if for_ is not None:
        start, end = instants("for_", for_, lambda: present)
        if not start == end < present:
            raise UsageError(f"for_={for_!r} is not a duration", hint='Use for_="7d" or "12h"')
        return chain.at("epoch", present + (present - start))
    if until is None:
        return NO_LAST_EPOCH
    if isinstance(until, int) and until < 0:
        raise UsageError(f"until={until} is negative", hint="Give the number of an epoch")
    latest = chain.at("epoch", present)
    return resolve_span(
        0, until, unit="epoch", chain=chain, latest=lambda: latest, now=lambda: present
    ).last


@dataclass
class Recorder:
    """The arguments and the progress of one recording."""

    explorer: Explorer
    local_store: LocalStore
    values: dict[str, Any]
    last: int
    start: int | None = None
    """First epoch of the report: where the earliest recording in the store starts."""
    oldest: int = 0
    """First epoch that the service still has."""
    final: int = -1
    """Last epoch that was loaded."""

    @property
    def is_done(self) -> bool:
        """Return whether the last epoch is loaded."""
        return self.final >= self.last

    def load(self) -> bool:
        """Store the final epochs that the service has; return False if a retry is needed."""
        try:
            self.explorer.expire_head()
            newest = self.explorer.chain_head.latest("epoch")
            finalized = self.explorer.chain_head.latest("epoch", finalized=True)
            oldest = max(newest - SERVED_EPOCHS + 1 + MARGIN_EPOCHS, 0)
            final = min(finalized, newest - 1, self.last)
            if self.start is None:
                stored_rows = self.stored(0, oldest)
                known = self.local_store.coverage(
                    stored_rows.table,
                    stored_rows.requested.subjects,
                    stored_rows.requested.intervals,
                )
                self.start = min([oldest, *(parts[0][0] for parts in known.values())])
            first = max(oldest, self.start)
            if final >= first:
                with warnings.catch_warnings():
                    if self.final >= 0:
                        # The first load has warned, and the report lists all missing rows.
                        warnings.simplefilter("ignore", MissingRows)
                    values = {**self.values, "since": first, "until": final}
                    self.explorer.load(ATTESTATIONS, values, strict=False, lazy=True)
                log.info("recorded up to epoch %d", final)
            self.oldest, self.final = oldest, final
        except (ServiceError, IntegrityError) as error:
            if isinstance(error, ServiceError) and not error.retryable:
                raise
            log.warning("%s; retry in one epoch", error)
            return False
        return True

    def wait(self, *, is_loaded: bool) -> None:
        """Wait until the next load."""
        pause = sleep if self.explorer.clock is None else self.explorer.clock.sleep
        pause(self.seconds_to_wait(is_loaded=is_loaded))

    def seconds_to_wait(self, *, is_loaded: bool) -> float:
        """Return the seconds until the next load; one epoch after a failure."""
        if self.is_done:
            return 0.0
        chain = self.explorer.chain
        epoch = float(chain.slots_per_epoch * chain.seconds_per_slot)
        if not is_loaded:
            return epoch
        target = min(self.final + LOAD_INTERVAL_EPOCHS, self.last)
        until_final = chain.time_of("epoch", target + EPOCHS_TO_FINALITY) - read_time(self.explorer)
        return max(until_final.total_seconds(), epoch)

    def stored(self, first: int, last: int) -> ReadThrough:
        """Return the part of the store that holds these epochs of the validators."""
        values = {**self.values, "since": first, "until": last}
        stored_rows = open_rows(self.explorer, self.local_store, ATTESTATIONS, values)
        if stored_rows is None or not stored_rows.requested.subjects:
            raise UsageError("validators is empty", hint="Give validators that exist")
        return stored_rows

    def report(self) -> pl.DataFrame:
        """Return the state of every interval of epochs, from the first recording to the end."""
        if self.start is None or self.final < self.start:
            return pl.DataFrame(schema=REPORT)
        stored_rows = self.stored(self.start, self.final)
        try:
            rows = self.states(stored_rows)
        except DatasetError:
            # The store has removed its damaged segment, so these epochs are now missing.
            rows = self.states(stored_rows)
        return pl.DataFrame(rows, schema=REPORT, orient="row").sort(
            "validator_index", "first_epoch"
        )

    def states(self, stored_rows: ReadThrough) -> list[tuple[int, int, int, str]]:
        """Return the stored and the missing intervals of each validator."""
        missing = stored_rows.find_unstored()
        served = stored_rows.select().rows.select("validator_index").unique().collect().to_series()
        requested = stored_rows.requested
        # The service does not know these validators, but no second response has confirmed it yet.
        unknown = stored_rows.store.unconfirmed(
            stored_rows.table, requested.subjects, requested.intervals
        )
        found = self.explorer.validator_epochs.known([*map(int, unknown)], 0)
        known = found.filter(pl.col("status").is_not_null())["validator_index"]
        rows = []
        for index in map(int, requested.subjects):
            gaps = missing.get(str(index), ())
            if index not in served and index not in known:
                gaps = subtract_intervals(gaps, unknown.get(str(index), ()))
            state = "stored" if index in served else "absent"
            rows += [
                (index, *part, state) for part in subtract_intervals(requested.intervals, gaps)
            ]
            for first, last in gaps:
                if first < self.oldest:
                    rows.append((index, first, min(last, self.oldest - 1), "lost"))
                if last >= self.oldest:
                    rows.append((index, max(first, self.oldest), last, "pending"))
        return rows
