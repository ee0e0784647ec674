"""The frames that a report is made from, and the reason of each that is missing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.active_periods import NATURAL, NOT_IN_DATASET, REASON, UNKNOWN
from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    MissingRows,
    NotFound,
    NotServed,
    QuotaSpent,
    RequestLimitExceeded,
    TableNotInDataset,
    UnreconciledRows,
    UsageError,
    find_caller_level,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.calendar import Chain
    from beaconframes.client import Explorer

Detail = Literal["auto", "epochs", "days"]
Frames = dict[str, pl.DataFrame]
"""The frames of a report, by name."""
Defect = Literal["", "gaps", "absent", "failed"]
"""What an input is without: nothing, some rows, what its source does not have, or its load."""

EPOCHS_PER_LOAD = 1_500
"""A node answers 2,000 epochs per load; a multiple of the window of a request."""


class PartMissing(Exception):
    """A part cannot be made; the message is the reason."""


@dataclass
class Input:
    """The rows of one loader, or the reason why there are none."""

    name: str
    loader: str
    rows: pl.DataFrame | None = None
    reason: str = ""
    missing: pl.DataFrame | None = None
    requests: int = 0
    cause: Literal["failed", "absent", "skipped"] = "failed"
    """Why there are no rows: the load failed, the source never has them, or none are needed."""
    error: BeaconframesError | None = None

    @property
    def state(self) -> str:
        """Return whether the rows are complete, incomplete, failed to load, or are missing."""
        if self.rows is None:
            return "failed" if self.cause == "failed" else "missing"
        return "complete" if self.missing is None else "incomplete"


@dataclass
class Inputs:
    """The frames of a report, by name, and the validators and epochs that they are about."""

    explorer: Explorer
    indices: list[int]
    groups: pl.DataFrame | None
    first: int
    last: int
    detail: Detail
    tz: str = "UTC"
    prices: pl.DataFrame | None = None
    price: str = "price"
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    items: dict[str, Input] = field(default_factory=dict)
    head: int | None = None
    """The latest epoch when the future was loaded, which may be long after the last one."""
    requested: int | None = None
    """The first requested epoch, if the source has nothing of the first ones."""
    is_range_given: bool = True
    """Whether the user chose the first epoch; otherwise it may be that of a whole day."""
    period: tuple[int, int] | None = None
    """The first and the last epoch, if daily statistics leave out a part of a day at an end."""
    note: str = ""
    """Why there are daily statistics without a choice of the user, and what they do not have."""
    spent: QuotaSpent | None = None
    """The error that ended the loads: the quota is used up."""

    @property
    def chain(self) -> Chain:
        """Return the chain."""
        return self.explorer.chain

    @property
    def has_epochs(self) -> bool:
        """Return whether there is a row per epoch, not per day."""
        return self.detail == "epochs"

    def get(self, name: str) -> pl.DataFrame | None:
        """Return a frame; None if it is missing."""
        item = self.items.get(name)
        return None if item is None else item.rows

    def list_selected_periods(self) -> list[int]:
        """Return the sync periods whose committee was selected in the range, a period before."""
        length = self.chain.epochs_per_sync_period
        periods = range(self.last // length + 2)
        return [n for n in periods if self.first <= max(n - 1, 0) * length <= self.last]

    def list_committees(self, *earlier: str) -> pl.DataFrame | None:
        """Return the current and the next sync committee, and *earlier* ones; None for none."""
        seats = [self.get(name) for name in (*earlier, "committees", "next_committees")]
        known = [rows for rows in seats if rows is not None]
        return pl.concat(known) if known else None

    def require(self, *names: str) -> list[pl.DataFrame]:
        """Return frames; raise `PartMissing` with the reason if one is missing."""
        found = []
        for name in names:
            rows = self.get(name)
            if rows is None:
                item = self.items.get(name)
                reason = f"{item.loader}: {item.reason}" if item else f"{name} is not loaded"
                raise PartMissing(reason)
            found.append(rows)
        return found

    def find_defect(self, name: str) -> Defect:
        """Return what an input is without in the range of the report."""
        item = self.items.get(name)
        if item is None or (item.rows is None and item.cause == "skipped"):
            return ""
        if item.rows is None:
            return "absent" if item.cause == "absent" else "failed"
        if item.missing is None:
            return ""
        gaps = item.missing.filter(~pl.col(REASON).is_in(NATURAL))
        if "pubkey" in gaps.columns:
            # A key whose deposit is not processed yet has no validator, and so no rows.
            gaps = gaps.filter((pl.col(REASON) != UNKNOWN) | pl.col("pubkey").is_null())
        for unit, first in (
            ("epoch", self.first),
            ("day", self.first // self.chain.epochs_per_day),
        ):
            if f"last_{unit}" in gaps.columns:
                # What is before the first row is not in the range any more.
                gaps = gaps.filter(pl.col(f"last_{unit}").fill_null(first) >= first)
        if gaps.is_empty():
            return ""
        return "failed" if item.rows.is_empty() else "gaps"

    def find_whole_days(self) -> range:
        """Return the days of the chain that have ended and are wholly in the range."""
        length = self.chain.epochs_per_day
        latest = self.explorer.chain_head.latest("day")
        return range(-(-self.first // length), min((self.last + 1) // length, latest + 1))

    def use_days(self) -> None:
        """Count whole days; a requested period stays as it is, with parts of days at its ends."""
        days, length = self.find_whole_days(), self.chain.epochs_per_day
        if not days:
            raise UsageError(
                f"epochs {self.first} to {self.last} have no whole day of the chain, and daily "
                "statistics have whole days",
                hint='Give an earlier since, or detail="epochs"',
            )
        whole = days.start * length, days.stop * length - 1
        if self.is_range_given and whole != (self.first, self.last):
            self.period = self.first, self.last
        self.first, self.last = whole

    def drop(self, name: str, reason: str) -> None:
        """Leave out a frame that cannot be used, for a *reason*."""
        self.items[name].rows, self.items[name].reason = None, reason

    def load(
        self,
        name: str,
        load: Callable[..., Any],
        *arguments: Any,
        refused: str = "",
        **options: Any,
    ) -> pl.DataFrame | None:
        """Load a frame with *load*; keep missing rows and the reason of a failure.

        *refused* is the reason if the service answers that such a request is not valid, or that it
        has no such rows.
        """
        item = self.items.setdefault(name, Input(name, _get_name(load)))
        rows = self._request(item, load, *arguments, refused=refused, **options)
        if item.reason:
            # The rows of earlier loads alone would look complete.
            item.rows = None
        elif rows is not None:
            item.rows = rows if item.rows is None else pl.concat([item.rows, rows])
        return item.rows

    def _request(
        self,
        item: Input,
        load: Callable[..., Any],
        *arguments: Any,
        refused: str = "",
        **options: Any,
    ) -> pl.DataFrame | None:
        """Return the rows of one load; add its requests, missing rows and reason to the *item*."""
        if self.spent is not None:
            item.reason, item.error = self.spent.message, self.spent
            return None
        before = self.explorer.requests
        rows: pl.DataFrame | None
        try:
            rows = load(*arguments, explorer=self.explorer, strict=True, frame="polars", **options)
        except MissingRows as error:
            rows = error.rows
            if refused and not rows.height:
                rows, item.reason, item.cause, item.error = None, refused, "absent", error
            elif error.missing is not None:
                known = [] if item.missing is None else [item.missing]
                item.missing = pl.concat([*known, error.missing], how="diagonal_relaxed")
        except UnreconciledRows as error:
            warnings.warn(error, stacklevel=find_caller_level())
            rows = error.rows
        except BeaconframesError as error:
            is_refused = bool(refused) and isinstance(error, BadRequest | NotFound)
            rows, item.reason = None, refused if is_refused else error.message
            # A node's head may be requested at any time: its requests prove nothing.
            has_sent = self.explorer.requests > before and not self.explorer.source.is_node
            item.cause = (
                "absent" if is_refused or _is_absent(error, has_sent=has_sent) else "failed"
            )
            item.error = error
            if isinstance(error, QuotaSpent):
                self.spent = error
        item.requests += self.explorer.requests - before
        return rows

    def load_epochs(self, name: str, load: Callable[..., Any], *, until: int | None = None) -> None:
        """Load a frame of all validators and epochs, some epochs at a time."""
        last = self.last if until is None else until
        item = self.items.setdefault(name, Input(name, _get_name(load)))
        parts: list[pl.DataFrame] = []
        for since in reversed(range(self.first, last + 1, EPOCHS_PER_LOAD)):
            end = min(since + EPOCHS_PER_LOAD - 1, last)
            is_gap = bool(parts) and parts[0].is_empty() and any(part.height for part in parts)
            request = self._search if name == "income" and is_gap else self._request
            rows = request(item, load, self.indices, since=since, until=end)
            if rows is None:
                # A part of a frame would look like a loss of income.
                return
            parts.insert(0, rows)
        item.rows = pl.concat(parts)

    def _search(
        self, item: Input, load: Callable[..., Any], indices: list[int], *, since: int, until: int
    ) -> pl.DataFrame | None:
        """Return the rows of a range if its first epoch has any: a gap needs few requests.

        A source may begin late, or have two ranges of epochs; validators may have exited before
        others were active. If the first epoch is missing, the range is missing for this reason.
        """
        probe = Input(item.name, item.loader)
        rows = self._request(probe, load, indices, since=since, until=since)
        item.requests += probe.requests
        item.reason, item.cause, item.error = probe.reason, probe.cause, probe.error
        if rows is not None and rows.height:
            return self._request(item, load, indices, since=since, until=until)
        if probe.missing is not None:
            gaps = probe.missing.with_columns(first_epoch=pl.lit(since), last_epoch=pl.lit(until))
            known = [] if item.missing is None else [item.missing]
            item.missing = pl.concat([*known, gaps], how="diagonal_relaxed")
        return rows

    def begin_with(self, name: str, unit: Literal["epoch", "day"]) -> None:
        """Begin with the first rows of a frame: what the source does not have is one gap.

        What a dataset does not have of the default range was not requested: it is not missing.
        """
        item, length = self.items[name], self.chain.epochs_per_day if unit == "day" else 1
        if item.rows is None or item.rows.is_empty():
            return
        begin = int(item.rows[unit].min())  # type: ignore[arg-type]
        if begin * length <= self.first:
            return
        first, last = f"first_{unit}", f"last_{unit}"
        if item.missing is not None:
            is_before = pl.col(first) < begin
            if not self.is_range_given:
                is_before &= pl.col(REASON) != NOT_IN_DATASET
            gap = item.missing.filter(is_before).select(REASON).unique()
            gap = gap.with_columns(
                pl.lit(self.first // length).alias(first), pl.lit(begin - 1).alias(last)
            )
            later = item.missing.filter(pl.col(last) >= begin)
            later = later.with_columns(pl.col(first).clip(begin))
            gaps = pl.concat([gap, later], how="diagonal_relaxed")
            item.missing = None if gaps.is_empty() else gaps
        self.requested, self.first = self.first, begin * length
        if self.period is not None:
            self.requested, self.period = self.period[0], (self.first, self.period[1])

    def skip(self, name: str, load: Callable[..., Any], reason: str) -> None:
        """State why a frame is not needed, or cannot be loaded without another one."""
        self.items[name] = Input(name, _get_name(load), reason=reason, cause="skipped")


def _is_absent(error: BeaconframesError, *, has_sent: bool) -> bool:
    """Return whether a source never has the rows: it said so itself, or without a request."""
    if isinstance(error, RequestLimitExceeded):
        return False
    is_known = isinstance(error, NotServed | UsageError) and not has_sent
    return is_known or isinstance(error, TableNotInDataset)


def _get_name(load: Callable[..., Any]) -> str:
    name = load.__name__
    return f"v2.{name}" if ".v2" in load.__module__ else name
