"""The head of the chain: the meaning of "latest", for clients and for the local explorer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from beaconframes.calendar import PUBLIC_CHAINS, Chain, Unit
from beaconframes.errors import UsageError
from beaconframes.time_range import Span, is_time, resolve_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.time_range import Moment


EPOCHS_TO_FINALITY = 3
"""Epochs from the current epoch back to the finalized one, as the public service counts them."""

FARTHEST = timedelta(days=3_650)
"""The time by which the clock of a chain without a known head may be ahead of the real one."""


class End(Protocol):
    """The latest numbers of a chain, from any source."""

    def latest(self, unit: Unit, chain: Chain, *, finalized: bool = False) -> int:
        """Return the latest slot, epoch or period; of days, the latest that is complete."""


@dataclass(frozen=True)
class Head:
    """The head of the chain at one moment: the latest processed epoch and slot."""

    epoch: int
    finalized_epoch: int
    slot: int

    def latest(self, unit: Unit, chain: Chain, *, finalized: bool = False) -> int:
        """Return the latest slot, epoch or period; of days, the latest that is complete."""
        epoch = self.finalized_epoch if finalized else self.epoch
        if unit == "slot":
            return chain.last_slot_of(epoch) if finalized else self.slot
        if unit == "day":
            # A day is published once it is over and final, so the current day is not the latest.
            return max(chain.at("day", chain.time_of("epoch", self.finalized_epoch + 1)) - 1, 0)
        return chain.at(unit, chain.time_of("epoch", epoch))


@dataclass(frozen=True)
class ChainHead:
    """The chain, and its head as far as a client knows it.

    ``head`` may cost a request, so it is called only if the plan depends on it. ``fixed`` is a
    head that no longer moves, such as that of a dataset served locally. ``batch_limit`` is how many
    validators one request may name, as far as the client has learned it; ``refuses_ranges`` says
    that the plan of the key includes windows only, no other ranges. ``reread`` requests the head
    once more, and may return a lower one; without it the head does not move. Without a
    request, ``recent`` returns the head if the service has just reported it, and ``last_reported``
    the last head that it has reported, of any age. ``drops_old_units`` says whether the service
    drops the oldest units of some tables; it is certain once the head is known. Ages count from
    ``present``, by default from ``now``, the time of the clock.
    """

    chain: Chain
    head: Callable[[], End]
    now: Callable[[], datetime]
    fixed: Head | None = None
    batch_limit: int = 100
    refuses_ranges: bool = False
    reread: Callable[[], End] | None = None
    recent: Callable[[], Head | None] | None = None
    last_reported: Callable[[], End | None] | None = None
    drops_old_units: Callable[[], bool] = lambda: True
    present: Callable[[], datetime] | None = None

    def read_present(self) -> datetime:
        """Return the moment from which ages count; it may cost a request for the head."""
        return (self.present or self.now)()

    def latest(self, unit: Unit, *, finalized: bool = False) -> int:
        """Return the latest number of *unit*; the first call may send a request."""
        return self.head().latest(unit, self.chain, finalized=finalized)

    def check_not_future(self, unit: Unit, number: int, *, finalized: bool = False) -> None:
        """Raise UsageError for a *number* that cannot exist yet; sends no request."""
        recent = self.recent() if self.recent is not None and not self.is_live else None
        when = "in the future"
        if (head := self.fixed or recent) is not None:
            last = head.latest(unit, self.chain, finalized=finalized)
            label = "latest finalized" if finalized else "latest"
            if number <= head.latest(unit, self.chain):
                when = "not final yet"
        elif self.is_live:
            last, label = self.chain.at(unit, self.now()), "current"
        else:
            # The clock of a simulated chain may be ahead, but a range has one request per unit in
            # some endpoints, so that one of centuries would fill the memory.
            latest = max(self.now(), self.chain.genesis) + FARTHEST
            last, label = self.chain.at(unit, latest), "latest possible"
        if number > last:
            raise UsageError(
                f"{unit} {number} is {when}: the {label} {unit} is {last}",
                hint=f"Give numbers up to {last}, or omit until to load up to the latest",
            )

    @property
    def is_live(self) -> bool:
        """Whether the real clock applies: it does to public chains, not to simulated ones."""
        return self.chain in PUBLIC_CHAINS.values()

    def span(
        self,
        since: Moment | None,
        until: Moment | None,
        unit: Unit,
        *,
        length: int,
        finalized: bool = False,
    ) -> Span:
        """Return the range from *since* to *until*.

        The default of *until* is the latest; without *since* the range has *length* units. A time
        after the latest is reduced to the latest; a number after it raises UsageError. The word
        ``"finalized"`` means the latest finalized unit.
        """
        if isinstance(since, str) and since == "finalized":
            since = self.latest(unit, finalized=True)
        if isinstance(until, str) and until == "finalized":
            until = self.latest(unit, finalized=True)

        def latest() -> int:
            return self.latest(unit, finalized=finalized)

        for bound in (since, until):
            if isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0:
                self.check_not_future(unit, bound, finalized=finalized)
        span = resolve_span(
            0 if since is None else since,
            "latest" if until is None else until,
            unit=unit,
            chain=self.chain,
            latest=latest,
            now=self.read_present,
        )
        first, last = span.first, span.last
        if is_time(until) and self.may_be_unfinalized(unit, last):
            last = min(last, latest())
        if since is None:
            first = max(last - length + 1, 0)
        if first > last:
            raise UsageError(
                f"since={since!r} is after the latest {unit}, {last}",
                hint="The chain has not reached that time yet. Give an earlier since",
            )
        return Span(first, last)

    def may_be_unfinalized(self, unit: Unit, number: int) -> bool:
        """Return whether *number* may not be finalized yet, judged by the clock."""
        return not self.is_live or self.chain.time_of(unit, number) > self.now() - timedelta(days=1)
