"""The part of a requested range that the service accepts: it may shrink while a load runs.

The window of an endpoint moves with the chain, and loses its oldest epoch. Replicas of the service
may disagree about the head. Both show as a refused request, for a range that was valid when the
load began.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.active_periods import NO_LONGER_SERVED, REASON
from beaconframes.endpoint import Role
from beaconframes.errors import BadRequest, MissingRows, ServiceError, SnapshotMoved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Parameter

log = logging.getLogger("beaconframes.fetch")

MAX_READINGS = 3
"""Readings of the head after a refusal: one replica of several may answer twice in a row."""


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
        """Return *calls* in the order to send; those that may be refused first.

        A service that drops old units drops the oldest ones first. Otherwise the newest units may
        be after the head: if they are refused, the other ones after it are not sent.
        """
        parameter = self.parameter
        if parameter is None or parameter.rows_column is None:
            return calls
        ends = [requested_units(self.endpoint, parameter, call) for call in calls]
        if parameter.window_moves:
            return [calls[n] for n in sorted(range(len(calls)), key=lambda n: ends[n].start)]
        newest = max(range(len(calls)), key=lambda n: ends[n].stop)
        return [calls[newest], *calls[:newest], *calls[newest + 1 :]]

    def may_be_after_head(self, call: Call) -> bool:
        """Return whether *call* requests units by number that may be after the head."""
        parameter = self.parameter
        if parameter is None or parameter.rows_column is None or self.is_open_ended:
            return False
        unit: Any = parameter.rows_column.unit
        requested = requested_units(self.endpoint, parameter, call)
        is_known = self.chain_head.reread is None
        return (
            bool(requested)
            and not is_known
            and self.chain_head.may_be_unfinalized(unit, requested.stop - 1)
        )

    def narrow(self, call: Call, refusal: ServiceError, *, public: bool) -> Call | None:
        """Return the part of the refused *call* that the service accepts; None if there is none.

        Raises
        ------
        SnapshotMoved
            Replicas of the service disagree about the head, and the lower one is refused too.
        BadRequest
            The caller gave a number after the head.
        ServiceError
            The *refusal*, if the head does not explain it.
        """
        parameter = self.parameter
        if parameter is None:
            raise refusal
        if not (self.is_open_ended or parameter.window_moves):
            raise self._explain(parameter, call) or refusal
        requested = requested_units(self.endpoint, parameter, call)
        if not requested:
            raise refusal
        self.is_narrowed = True
        accepted = self._accepted(requested)
        for _ in range(MAX_READINGS):
            if accepted != requested:
                break
            self._read_head(parameter, requested, refusal)
            accepted = self._accepted(requested)
        if accepted == requested:
            if (moved := self._disagreement(requested)) is not None:
                raise moved
            if self.is_open_ended:
                refusal.hint = (
                    f"The service states {self.unit} {requested.stop - 1} as its latest, and "
                    "refused it. Try again in a minute, or give a lower until="
                )
            raise refusal
        oldest = requested.start if self.oldest is None else self.oldest
        self.oldest = min(requested.start, oldest)
        if not accepted:
            return None
        bounds = {"since": accepted.start, "until": accepted.stop - 1}
        position = self.endpoint.all_parameters.index(parameter)
        (batch,) = parameter.batches({**self.values, **bounds}, self.chain_head)
        batches = (*call.batches[:position], batch, *call.batches[position + 1 :])
        return self.endpoint.call(batches, public=public)

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
            missing = missing.with_columns(pl.min_horizontal(last, self.last))
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
                *(self.unit, requested.stop - 1, latest, latest),
            )
            # The request ends with the latest unit of an earlier reading.
            self.latest.append(requested.stop - 1)
            self.last = latest if self.last is None else min(latest, self.last)
        self.first = max(self.first, served.start)

    def _explain(self, parameter: Parameter, call: Call) -> BadRequest | None:
        """Return the error for a *call* whose last unit is after the head; None if it is not."""
        requested = requested_units(self.endpoint, parameter, call)
        if not requested or self.chain_head.reread is None:
            return None
        try:
            served = parameter.served_units(self.chain_head.head(), self.chain_head)
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

    def _disagreement(self, requested: range) -> SnapshotMoved | None:
        """Return the error for replicas that disagree; None if all readings are the same."""
        low, high = min(self.latest), max(self.latest)
        if low == high:
            return None
        unit = self.unit
        return SnapshotMoved(
            f"replicas of the service disagree about the latest {unit}: {high} and {low}, "
            f"and {unit} {requested.stop - 1} was refused",
            endpoint=self.endpoint.route,
            hint=f"Try again in a minute, or give an until= before {unit} {low}",
        )


def requested_units(endpoint: Endpoint, parameter: Parameter, call: Call) -> range:
    """Return the units of *parameter* that *call* requests; none if it states no numbers."""
    batch = call.batches[endpoint.all_parameters.index(parameter)]
    column = parameter.rows_column
    numbers = batch.expected[0].values.get(column.name, ()) if batch.expected and column else ()
    return range(min(numbers), max(numbers) + 1) if numbers else range(0)
