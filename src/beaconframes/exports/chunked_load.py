"""Chunked loads: one loader call as many short calls in the order of time, to bound memory.

A chunked load starts after the published rows and after the finished partitions of an interrupted
export. It first requests the gaps of the published rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache.pubkey_index import resolve_pubkeys
from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS
from beaconframes.exports.journal import IncompatibleExport
from beaconframes.exports.loader_calls import join_items
from beaconframes.exports.partitions import VALIDATORS_PER_PARTITION
from beaconframes.exports.result import NOT_FINAL
from beaconframes.intervals import clip_intervals, intervals_of
from beaconframes.load_context import LOAD
from beaconframes.time_range import is_relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.calendar import Chain
    from beaconframes.endpoint.cache_policy import CachePolicy, CacheRange
    from beaconframes.exports.loader_calls import LoaderCall
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource
    from beaconframes.intervals import Intervals

CHUNK_ROWS = 131_072
CHUNK_UNITS = 1_000
"""Units per call where the number of rows is unknown."""
CHOOSE_FOLDER = "choose another folder, or remove this one"


@dataclass
class ChunkedLoad:
    """The requested units and validators of a call, and the first unit to load."""

    source: TableSource
    call: LoaderCall
    policy: CachePolicy
    requested: CacheRange
    since: int
    until: int
    subjects: list[int | str]
    """The requested validators: indices in order, then the public keys without an index."""
    open_gaps: tuple[dict[str, Any], ...] = ()
    """The gaps of the published rows, which are requested again."""
    start: int = 0
    """The first unit that is neither published nor finished."""
    first_subject: int = 0
    partitioning: Partitioning | None = None
    last_final: int = 0
    """The last final unit when the export started."""

    @classmethod
    def create(
        cls, source: TableSource, call: LoaderCall, policy: CachePolicy, requested: CacheRange
    ) -> ChunkedLoad:
        """Connect *source* to a chunked load of *call*.

        The load ends at the currently finalized epoch, unless the call includes later rows.
        """
        finalized = call.chain_head.latest("epoch", finalized=True)
        last = policy.final_until(call.chain_head, finalized)
        first, until = requested.intervals[0][0], requested.intervals[-1][1]
        if not call.unfinalized:
            until = min(until, last)
        subjects: list[int | str] = []
        if requested.subjects != CHAIN_SUBJECTS:
            # Indices only, so that no validator is requested twice and the order is known.
            keys, store = requested.pubkeys, call.explorer.local_store
            indices = resolve_pubkeys(call.explorer, store, keys) if keys else {}
            subjects = [*sorted({*map(int, requested.subjects), *indices.values()})]
            subjects += [key for key in keys if key not in indices]
        load = cls(source, call, policy, requested, first, until, subjects, start=first)
        load.last_final = last
        source.frames = load.load_frames
        if not call.unfinalized:
            # Rows that are not final may change, so an export with them cannot be continued.
            source.only_new_rows = True
            source.resume = load.resume
        source.unit_column = policy.unit_column
        load.update_request()
        return load

    @property
    def chain(self) -> Chain:
        """Return the chain of the rows."""
        return self.call.explorer.chain

    def update_request(self) -> None:
        """Set the request and the finalized epoch of the source."""
        request: dict[str, Any] = {"loader": self.call.function.__name__}
        subject = self.policy.subject.arguments()[0] if self.policy.subject else None
        listed = self.policy.unit.arguments()[0] if self.policy.is_listed else None
        replaced = ("since", "until", subject, listed)
        arguments = self.call.describe_arguments()
        request |= {name: value for name, value in arguments.items() if name not in replaced}
        if subject is not None:
            subjects = self.requested.subjects
            indices = () if subjects == CHAIN_SUBJECTS else map(int, subjects)
            request[subject] = format_intervals(intervals_of(indices), *self.requested.pubkeys)
        request |= {"unit": self.policy.unit_name, "since": self.since, "until": self.until}
        if only := self.format_listed(self.since, self.until):
            request["only"] = only
        self.source.request = request
        epoch = self.find_last_epoch()
        self.source.provenance |= {
            "finalized_epoch": epoch,
            "finalized_time": self.chain.time_of("epoch", epoch + 1).isoformat(),
        }

    def format_listed(self, since: int, until: int) -> str:
        """Return the listed units from *since* to *until*; "" if every unit is requested."""
        is_listed = self.policy.is_listed
        parts = clip_intervals(self.requested.intervals, since, until) if is_listed else ()
        return "" if parts in ((), ((since, until),)) else format_intervals(parts)

    def find_last_epoch(self) -> int:
        """Return the epoch of the last final unit."""
        unit: Any = self.policy.unit_name
        last = min(self.until, self.last_final) if self.call.unfinalized else self.until
        if unit == "epoch":
            return last
        if unit == "slot":
            # A final slot is in a final epoch.
            return last // self.chain.slots_per_epoch
        end = self.chain.at("epoch", self.chain.time_of(unit, last + 1)) - 1
        # A committee is known before its period ends.
        return min(end, self.call.chain_head.latest("epoch", finalized=True))

    def resume(
        self,
        published: dict[str, Any],
        interrupted: dict[str, Any],
        finished: list[int],
        gaps: list[dict[str, Any]],
        partitioning: Partitioning,
    ) -> bool:
        """Start after the *published* table, or after the *finished* partitions of the journal.

        *interrupted* is the plan of the journal, *gaps* are its gaps. Returns whether the finished
        partitions are reused. Raises IncompatibleExport for other bounds.
        """
        self.partitioning = partitioning
        requests = [plan["request"] for plan in (published, interrupted) if plan]
        self._check_numbers(requests, [*published.get("gaps", ()), *gaps])
        for request in requests:
            self._extend_bounds(request)
        if interrupted and (self.policy.is_listed or self.is_relative("until")):
            # A resumed export ends at its original end, even if later units are final by now.
            self.until = interrupted["request"]["until"]
        if published:
            self.start = published["request"]["until"] + 1
            # Rows that were not final come after the published ones, and are loaded with them.
            self.open_gaps = tuple(g for g in published["gaps"] if g.get("reason") != NOT_FINAL)
        if finished and not self.open_gaps:
            last = max(finished)
            if partitioning.by == "validators":
                self.first_subject = (last + 1) * VALIDATORS_PER_PARTITION
            else:
                self.start = max(self.start, self.find_unit_after(last))
            self.source.gaps = self.select_finished_gaps(gaps)
        self.update_request()
        return bool(finished) and not self.open_gaps

    def select_finished_gaps(self, gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the parts of *gaps* that this load does not request again."""
        unit, subject = self.policy.unit_column, self.policy.subject_column
        finished = []
        for gap in gaps:
            if gap.get("reason") == NOT_FINAL:
                continue
            if self.first_subject and gap.get(subject or "", -1) < self.first_subject:
                finished.append(gap)
            elif not self.first_subject and self.get_gap_bounds(gap)[0] < self.start:
                last = f"last_{unit}"
                cut = {last: min(gap[last], self.start - 1)} if last in gap else {}
                finished.append({**gap, **cut})
        return finished

    def _check_numbers(self, requests: list[dict[str, Any]], gaps: list[dict[str, Any]]) -> None:
        """Raise IncompatibleExport if a bound is not a number."""
        unit, subject = self.policy.unit_column, self.policy.subject_column
        columns = {unit, f"first_{unit}", f"last_{unit}", subject}
        values = [request.get(name) for request in requests for name in ("since", "until")]
        values += [value for gap in gaps for name, value in gap.items() if name in columns]
        if any(type(value) is not int for value in values):
            raise IncompatibleExport(
                f"the existing dataset contains an invalid {self.policy.unit_name}",
                hint=CHOOSE_FOLDER.capitalize(),
            )

    def _extend_bounds(self, request: dict[str, Any]) -> None:
        """Extend the bounds to those of an earlier *request*; raise if they do not fit."""
        unit = self.policy.unit_name
        # The service may report an older head than before. Relative bounds are older by as much.
        lag = max(request["until"] - self.until, 0) if self.is_relative("until") else 0
        is_earlier = self.since < request["since"] - lag
        if is_earlier or (request["since"] != self.since and not self.is_relative("since")):
            raise IncompatibleExport(
                f"the existing dataset starts at {unit} {request['since']}, and this export at "
                f"{self.since}",
                hint=f"Give the same since, {CHOOSE_FOLDER}",
            )
        if request["until"] > self.requested.intervals[-1][1] and not self.is_relative("until"):
            raise IncompatibleExport(
                f"the existing dataset ends at {unit} {request['until']}, and this export at "
                f"{self.until}",
                hint=f"Give the same until or a later one, {CHOOSE_FOLDER}",
            )
        old, new = request.get("only"), self.format_listed(request["since"], request["until"])
        if self.policy.is_listed and (old or "") != new:
            every = f"every {unit}"
            raise IncompatibleExport(
                f"up to {request['until']}, the existing dataset has {old or every}, and this "
                f"export {new or every}",
                hint=f"Give the same {unit}s, or add later ones; or {CHOOSE_FOLDER}",
            )
        self.since = self.start = request["since"]
        self.until = max(self.until, request["until"])

    def is_relative(self, bound: str) -> bool:
        """Return whether a bound depends on the chain head: omitted, an age, a negative number."""
        return not self.policy.is_listed and is_relative(self.call.arguments.get(bound))

    def find_unit_after(self, number: int) -> int:
        """Return the first unit that starts after a partition."""
        assert self.partitioning is not None
        unit: Any = self.policy.unit_name
        end = self.partitioning.end_time(number, self.chain)
        if end is None:
            return self.since
        if end <= self.chain.genesis:
            return 0
        number_at_end = self.chain.at(unit, end)
        starts_there = self.chain.time_of(unit, number_at_end) >= end
        return number_at_end if starts_there else number_at_end + 1

    def load_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of one chunk after the other."""
        for gap in sorted(self.open_gaps, key=lambda g: self.get_gap_bounds(g)[0]):
            yield from self.refetch_gap(gap)
        # Only listed units have a fixed end.
        is_listed = self.policy.is_listed
        requested = self.requested.intervals if is_listed else ((self.since, self.until),)
        parts = clip_intervals(requested, max(self.since, self.start), self.until)
        by_subject = self.partitioning is not None and self.partitioning.by == "validators"
        blocks = self.split_subjects(by_subject=by_subject)
        intervals = [interval for part in parts for interval in self.split_interval(part)]
        order = [(block, interval) for interval in intervals for block in blocks]
        if by_subject:
            order = [(block, interval) for block in blocks for interval in intervals]
        progress = LOAD.get().progress
        if progress is not None:
            progress.expect_loads(len(order))
        for block, interval in order:
            rows, gaps = self.call.load(**self.build_arguments(block, interval))
            self.source.gaps += gaps
            self.source.is_partial = not by_subject and block is not blocks[-1]
            if progress is not None:
                progress.count_load()
            yield self.call.mark_final(rows, pl.col(self.policy.unit_column) <= self.last_final)
        self.source.gaps += self.find_unfinalized_gaps()

    def find_unfinalized_gaps(self) -> list[dict[str, Any]]:
        """Return the requested units that are not final.

        A range without an absolute end ends at the last final unit, so it has none, except if no
        unit of it is final.
        """
        if self.is_relative("until") and self.until >= self.since:
            return []
        unit, requested = self.policy.unit_column, self.requested.intervals
        intervals = clip_intervals(requested, self.until + 1, requested[-1][1])
        return [
            {f"first_{unit}": first, f"last_{unit}": last, "reason": NOT_FINAL}
            for first, last in intervals
        ]

    def split_subjects(self, *, by_subject: bool) -> list[list[int | str]]:
        """Return the validators of each call."""
        if not self.subjects:
            return [[]]
        subjects = [s for s in self.subjects if isinstance(s, str) or s >= self.first_subject]
        window = min(self.policy.window, max(self.until - self.start + 1, 1))
        size = max(CHUNK_ROWS // window // 100, 1) * 100
        if not by_subject:
            return [subjects[i : i + size] for i in range(0, len(subjects), size)]

        def get_partition(subject: int | str) -> int | str:
            return subject // VALIDATORS_PER_PARTITION if isinstance(subject, int) else "keys"

        return [list(group) for _, group in groupby(subjects, get_partition)]

    def split_interval(self, part: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the intervals of units of each call."""
        # A chunk is a whole number of requests, which the loader sends concurrently.
        window = min(self.policy.window, part[1] - part[0] + 1)
        units = CHUNK_ROWS // len(self.subjects) if self.subjects else CHUNK_UNITS
        length = max(units // window, 1) * window
        for first in range(part[0], part[1] + 1, length):
            yield first, min(first + length - 1, part[1])

    def build_arguments(
        self, subjects: list[int | str], interval: tuple[int, int]
    ) -> dict[str, Any]:
        """Return the arguments of the call for *subjects* in *interval*."""
        first, last = interval
        arguments: dict[str, Any] = {}
        if subjects and self.policy.subject is not None:
            arguments[self.policy.subject.arguments()[0]] = subjects
        if self.policy.is_listed:
            return arguments | {self.policy.unit.arguments()[0]: range(first, last + 1)}
        return arguments | {"since": first, "until": last}

    def refetch_gap(self, gap: dict[str, Any]) -> Iterator[pl.DataFrame]:
        """Request again the rows of a published gap."""
        first, last = self.get_gap_bounds(gap)
        column, unit = self.policy.subject_column, self.policy.unit_column
        if not gap.keys() & {column, unit, f"first_{unit}"}:
            # The gap does not state its units or validator, so it cannot be requested again.
            self.source.gaps.append(gap)
            return
        subjects = [gap[column]] if column in gap else [*self.subjects]
        interval = max(first, self.since), min(last, self.until)
        rows, gaps = self.call.load(**self.build_arguments(subjects, interval))
        self.source.gaps += gaps
        # Other rows of the unit are published: a gap may be one slot of an epoch.
        for name in rows.columns:
            low = gap.get(f"first_{name}", gap.get(name))
            if type(low) is int:
                rows = rows.filter(pl.col(name).is_between(low, gap.get(f"last_{name}", low)))
        yield rows

    def get_gap_bounds(self, gap: dict[str, Any]) -> tuple[int, int]:
        """Return the first and the last unit of a gap."""
        unit = self.policy.unit_column
        first = gap.get(f"first_{unit}", gap.get(unit, self.since))
        last = gap.get(f"last_{unit}", gap.get(unit, self.start - 1))
        return int(first), int(last)


def format_intervals(intervals: Intervals, *others: str) -> str:
    """Return intervals of numbers, and *others*, as text."""
    return join_items([*(f"{first}-{last}" for first, last in intervals), *others])
