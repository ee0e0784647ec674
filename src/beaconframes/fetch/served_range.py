"""The part of a requested range that the service accepts: it may shrink while a load runs.

The window of an endpoint moves with the chain, and loses its oldest epoch. Replicas of the service
may disagree about the head. Both show as a refused request, for a range that was valid when the
load began.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.active_periods import NO_LONGER_SERVED, REASON
from beaconframes.endpoint import Head, Role
from beaconframes.errors import (
    BadRequest,
    MissingRows,
    ServiceError,
    SnapshotMoved,
    UsageError,
)
from beaconframes.fetch.head import HEAD_NOT_SERVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Parameter

log = logging.getLogger("beaconframes.fetch")

MAX_READINGS = 3
"""Readings of the head after a refusal: one replica of several may answer twice in a row."""
MAX_LOWERED = 2
"""Units below the stated head that are tried when every reading of the head is the same."""
STATED_LATEST = re.compile(r"latest (?:epoch|day) is ([0-9]{1,12})\b", re.ASCII)
"""The head in the message of a refusal: the one of the replica that refused."""


GENESIS = Head(0, 0, 0)
"""The lowest head: every chain has its first epoch."""


@dataclass
class ServedRange:
    """The epochs or days of one load that the service accepts, as far as it refused others."""

    endpoint: Endpoint
    chain_head: ChainHead
    values: Mapping[str, Any]
    """The arguments of the load."""
    is_narrowed: bool = False
    """Whether any request was refused and narrowed."""
    first: int = 0
    last: int | None = None
    """The first and the last unit that every reading of the head accepts."""
    oldest: int | None = None
    """The oldest unit of the refused requests."""
    latest: list[int] = field(default_factory=list)
    """The latest unit, as planned and by each reading of the head."""
    is_guessed: bool = False
    """Whether the end was lowered without a reading of the head that says so."""
    start: int = 0
    """The first unit of the load, once a request was refused."""

    @property
    def parameter(self) -> Parameter | None:
        """Return the parameter of the range, if the endpoint has one."""
        return next(iter(self.endpoint.parameters_of(Role.RANGE)), None)

    @property
    def unit(self) -> str:
        """Return the column of the range: the epoch, or the day."""
        column = None if self.parameter is None else self.parameter.rows_column
        assert column is not None
        return column.name

    @property
    def is_open_ended(self) -> bool:
        """Return whether the range ends at the head; the caller gave no number as its end."""
        until = self.values.get("until")
        return not isinstance(until, int) or isinstance(until, bool) or until < 0

    def sort(self, calls: list[Call]) -> list[Call]:
        """Return *calls* in the order to send: the oldest units first, all validators of a range.

        A server then reads each range once. A service that drops old units drops the oldest ones
        first. Otherwise the newest units may be after the head, so one call for them is sent
        first: if it is refused, the other ones after the head are not sent.
        """
        parameter = self.parameter
        if parameter is None or parameter.rows_column is None:
            return calls
        ends = [self._requested_units(call) for call in calls]
        numbers = range(len(calls))
        newest = None if parameter.window_moves else max(numbers, key=lambda n: ends[n].stop)
        return [calls[n] for n in sorted(numbers, key=lambda n: (n != newest, ends[n].start))]

    def may_be_after_head(self, calls: list[Call]) -> bool:
        """Return whether *calls* request units by number that may be after the head.

        They are not, if the service has stated a head that is not before them, of whatever age.
        """
        parameter = self.parameter
        if parameter is None or parameter.rows_column is None or self.is_open_ended:
            return False
        unit: Any = parameter.rows_column.unit
        newest = self._newest(calls)
        if newest is None or not self.chain_head.may_be_unfinalized(unit, newest):
            return False
        last_reported = self.chain_head.last_reported
        stated = None if last_reported is None else last_reported()
        head = self.chain_head.fixed or stated or GENESIS
        served = parameter.served_units(head, self.chain_head)
        return served is not None and newest >= served.stop

    def needs_head(self, calls: list[Call]) -> bool:
        """Return whether *calls* may request epochs after the head, so that it is requested first.

        A refused request costs as much as a request for the head, and mostly does not state it.
        """
        return self.may_be_after_head(calls) and self.unit == "epoch"

    def check_not_future(self, calls: list[Call]) -> None:
        """Raise UsageError if *calls* request epochs after the head; request the head if needed."""
        if not self.needs_head(calls):
            return
        try:
            served = self.served_units()
        except HEAD_NOT_SERVED:
            # A refused request raises its own error.
            return
        newest = self._newest(calls)
        if served is None or newest is None or newest < served.stop:
            return
        latest = served.stop - 1
        raise UsageError(
            f"{self.unit} {newest} is in the future: the service has {self.unit}s up to {latest}",
            hint=f"Give numbers up to {latest}, or omit until to load up to the latest",
        )

    def served_units(self) -> range | None:
        """Return the units that the service has; request the head unless it is fresh."""
        if self.parameter is None:
            return None
        return self.parameter.served_units(self.chain_head.head(), self.chain_head)

    def narrow(self, call: Call, refusal: ServiceError, *, public: bool) -> Call | None:
        """Return the part of the refused *call* that the service accepts; None if there is none.

        Raises
        ------
        SnapshotMoved
            Replicas of the service disagree about the head. The lower one is refused too, or it is
            before the range.
        BadRequest
            The caller gave a number after the head.
        ServiceError
            The *refusal*, if the head does not explain it.
        """
        parameter = self.parameter
        if parameter is None:
            raise refusal
        if not (self.is_open_ended or parameter.window_moves):
            raise self._explain(call) or refusal
        requested = self._requested_units(call)
        if not requested:
            raise refusal
        if not self.is_narrowed:
            self.is_narrowed, self.start = True, self._first_unit(parameter)
        accepted = self._reduce(parameter, requested, refusal)
        if self.last is not None and self.last < self.start:
            raise self._disagreement(requested, refusal)
        oldest = requested.start if self.oldest is None else self.oldest
        self.oldest = min(requested.start, oldest)
        if not accepted:
            return None
        bounds = {"since": accepted.start, "until": accepted.stop - 1}
        position = self.endpoint.all_parameters.index(parameter)
        (batch,) = parameter.batches({**self.values, **bounds}, self.chain_head)
        batches = (*call.batches[:position], batch, *call.batches[position + 1 :])
        return self.endpoint.call(batches, public=public)

    def _reduce(self, parameter: Parameter, requested: range, refusal: ServiceError) -> range:
        """Return the part of *requested* that the head explains; raise if it explains nothing."""
        accepted = self._accepted(requested)
        if accepted == requested and self.is_open_ended:
            accepted = self._lower_as_stated(requested, refusal)
        for _ in range(0 if self.is_guessed else MAX_READINGS):
            if accepted != requested:
                break
            self._read_head(parameter, requested, refusal)
            accepted = self._accepted(requested)
        return self._lower_by_one(requested, refusal) if accepted == requested else accepted

    def clip_rows(self, rows: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame | pl.LazyFrame:
        """Return *rows* without units that were refused for other rows of the load."""
        unit = pl.col(self.unit)
        if self.last is not None:
            rows = rows.filter(unit <= self.last)
        if dropped := self.dropped:
            rows = rows.filter(~unit.is_between(dropped.start, dropped.stop - 1))
        return rows

    def clip_gaps(self, missing: pl.DataFrame) -> pl.DataFrame:
        """Return the gaps in *missing* without the units that were refused."""
        unit = self.unit
        first, last = pl.col(f"first_{unit}"), pl.col(f"last_{unit}")
        if f"first_{unit}" not in missing.columns:
            return missing
        if self.last is not None:
            missing = missing.with_columns(last.clip(upper_bound=self.last))
        if dropped := self.dropped:
            starts_inside = first.is_between(dropped.start, dropped.stop - 1)
            missing = missing.with_columns(
                pl.when(starts_inside).then(dropped.stop).otherwise(first).alias(f"first_{unit}")
            )
        return missing.filter((first <= last) | first.is_null())

    def warnings(self) -> list[Warning]:
        """Return the warning that names the units which left the window; none if none left."""
        dropped = self.dropped
        if not dropped:
            return []
        unit = self.unit
        span = f"{unit} {dropped.start}"
        if len(dropped) > 1:
            span = f"{unit} {dropped.start} to {dropped.stop - 1}"
        warning = MissingRows(
            f"{span} left the window of the service during the load: the rows begin with "
            f"{unit} {dropped.stop}",
            endpoint=self.endpoint.route,
            hint="Request fewer validators in one call, or start since= a few epochs later",
        )
        warning.missing = pl.DataFrame(
            {
                f"first_{unit}": [dropped.start],
                f"last_{unit}": [dropped.stop - 1],
                REASON: [NO_LONGER_SERVED],
            }
        )
        return [warning]

    @property
    def dropped(self) -> range:
        """Return the requested units that left the window."""
        return range(self.first if self.oldest is None else self.oldest, self.first)

    def _accepted(self, requested: range) -> range:
        """Return the part of *requested* that the service accepts, as far as it is known."""
        stop = requested.stop if self.last is None else min(requested.stop, self.last + 1)
        start = max(requested.start, self.first)
        return range(start, stop) if start < stop else range(0)

    def _read_head(self, parameter: Parameter, requested: range, refusal: ServiceError) -> None:
        """Read the head again; raise the *refusal* if it cannot be read."""
        if self.chain_head.reread is None:
            raise refusal
        try:
            head = self.chain_head.reread()
            served = parameter.served_units(head, self.chain_head)
        except ServiceError:
            raise refusal from None
        if not served:
            raise refusal
        latest = served.stop - 1
        self.latest.append(latest)
        if self.is_open_ended and latest < requested.stop - 1:
            log.warning(
                "the service stated %s %d as its latest, and now states %d: loading up to %d",
                self.unit,
                requested.stop - 1,
                latest,
                latest,
            )
            # The request ends with the latest unit of an earlier reading.
            self.latest.append(requested.stop - 1)
            self.last = latest if self.last is None else min(latest, self.last)
        self.first = max(self.first, served.start)

    def _explain(self, call: Call) -> BadRequest | None:
        """Return the error for a *call* whose last unit is after the head; None if it is not."""
        requested = self._requested_units(call)
        if not requested or self.chain_head.reread is None:
            return None
        try:
            served = self.served_units()
        except ServiceError:
            return None
        if not served or requested.stop <= served.stop:
            return None
        unit, latest = self.unit, served.stop - 1
        return BadRequest(
            f"{unit} {requested.stop - 1} is after the latest {unit} of the service, {latest}",
            endpoint=self.endpoint.route,
            hint=f"Give numbers up to {latest}, or omit until to load up to the latest",
        )

    def _lower_as_stated(self, requested: range, refusal: ServiceError) -> range:
        """Return what is accepted up to the head that the *refusal* states, if it states one."""
        stated = STATED_LATEST.search(refusal.message)
        if stated is None or int(stated[1]) >= requested.stop - 1:
            return requested
        self._lower(int(stated[1]), requested)
        return self._accepted(requested)

    def _lower_by_one(self, requested: range, refusal: ServiceError) -> range:
        """Return *requested* without its last unit: the replica that refused it may lag behind.

        Every reading of the head has the refused unit, so no lower head is known.
        """
        if not self.is_open_ended:
            raise refusal
        refused, stated = requested.stop - 1, max(self.latest)
        if min(self.latest) != stated and not self.is_guessed:
            raise self._disagreement(requested, refusal)
        if stated - refused >= MAX_LOWERED:
            if self.unit in refusal.message:
                raise self._disagreement(requested, refusal)
            refusal.hint = (
                f"The service states {self.unit} {stated} as its latest, and refused {self.unit} "
                f"{refused}. Try again in a minute, or give a lower until="
            )
            raise refusal
        self.is_guessed = True
        self._lower(refused - 1, requested)
        return self._accepted(requested)

    def _lower(self, last: int, requested: range) -> None:
        """Set the last unit that is loaded, which is before the end of *requested*."""
        log.warning(
            "the service stated %s %d as its latest, and refused it: loading up to %d",
            self.unit,
            requested.stop - 1,
            last,
        )
        self.latest += [requested.stop - 1, last]
        self.last = last if self.last is None else min(last, self.last)

    def _disagreement(self, requested: range, refusal: ServiceError) -> SnapshotMoved:
        unit, low, high = self.unit, min(self.latest), max(self.latest)
        if self.is_guessed:
            low = requested.stop - 1
            words = f"one states {high}, and one refuses {low} ({refusal.message})"
        elif self.last is not None and self.last < self.start:
            words = f"{high} and {low}, and the range begins with {unit} {self.start}"
        else:
            words = f"{high} and {low}, and {unit} {requested.stop - 1} was refused"
        return SnapshotMoved(
            f"replicas of the service disagree about the latest {unit}: {words}",
            endpoint=self.endpoint.route,
            hint=f"Try again in a minute, or give an until= before {unit} {low}",
        )

    def _first_unit(self, parameter: Parameter) -> int:
        """Return the first unit of the load, by the head that it was planned with."""
        column = parameter.rows_column
        assert column is not None
        expected = parameter.requested_units(self.values, self.chain_head) or ()
        return min((min(rows.values[column.name]) for rows in expected), default=0)

    def _newest(self, calls: list[Call]) -> int | None:
        """Return the newest unit that *calls* request; None if they state no numbers."""
        requested = map(self._requested_units, calls)
        return max((units.stop - 1 for units in requested if units), default=None)

    def _requested_units(self, call: Call) -> range:
        """Return the units of the range that *call* requests; none if it states no numbers."""
        assert self.parameter is not None
        batch = call.batches[self.endpoint.all_parameters.index(self.parameter)]
        column = self.parameter.rows_column
        numbers = batch.expected[0].values.get(column.name, ()) if batch.expected and column else ()
        return range(min(numbers), max(numbers) + 1) if numbers else range(0)
