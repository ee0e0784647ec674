"""Chunked loads: one loader call as many short calls in the order of time, to bound memory.

A chunked load starts after the published rows, and first requests their gaps again. An interrupted
export is repeated: what it has loaded is in the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from beaconframes.cache.pubkey_index import resolve_pubkeys
from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS
from beaconframes.exports.loader_calls import join_items
from beaconframes.exports.partitions import VALIDATORS_PER_PARTITION
from beaconframes.exports.result import NOT_FINAL
from beaconframes.exports.work_folder import IncompatibleExport
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

CHUNK_ROWS = 2**19
CHUNK_UNITS = 1_000
"""Units per call where the number of rows is unknown."""
CHOOSE_FOLDER = "choose another folder, or remove this one"


class Chunk(NamedTuple):
    """The validators and the interval of units of one call."""

    subjects: list[int | str]
    first: int
    last: int
    gap: dict[str, Any] | None = None
    """The published gap that the call requests again; None for new rows."""


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
    open_gaps: list[dict[str, Any]] = field(default_factory=list)
    """The gaps of the published rows, which are requested again."""
    start: int = 0
    """The first unit that is not published."""
    by_subject: bool = False
    """Whether all units of some validators come before the next validators."""
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
            source.extend = load.extend
        source.unit_column = policy.unit_column
        load.update_request()
        return load

    @property
    def chain(self) -> Chain:
        """Return the chain of the rows."""
        return self.call.explorer.chain

    @property
    def window(self) -> int:
        """Return how many units a request covers; one if the source sends no requests."""
        return self.policy.window if self.call.explorer.source.sessions else 1

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

    def extend(self, published: dict[str, Any], partitioning: Partitioning) -> None:
        """Start after the *published* table, {} if there is none.

        Raises IncompatibleExport for other bounds.
        """
        self.by_subject = partitioning.by == "validators"
        if published:
            self._extend_bounds(published)
        # The calls of an interval have the same partitions, each of other validators.
        has_one_call = self.by_subject or len(self.split_subjects()) == 1
        self.source.is_ordered = has_one_call and not self.open_gaps

    def _extend_bounds(self, published: dict[str, Any]) -> None:
        """Start after the *published* table, and request its gaps again."""
        request = published["request"]
        self._check_numbers(request, published["gaps"])
        self._check_bounds(request)
        self.since = request["since"]
        self.until = max(self.until, request["until"])
        self.start = request["until"] + 1
        # Rows that were not final come after the published ones, and are loaded with them.
        gaps = [gap for gap in published["gaps"] if gap.get("reason") != NOT_FINAL]
        self.open_gaps = [gap for gap in gaps if self.is_requestable(gap)]
        self.source.gaps = [gap for gap in gaps if not self.is_requestable(gap)]
        self.update_request()

    def _check_numbers(self, request: dict[str, Any], gaps: list[dict[str, Any]]) -> None:
        """Raise IncompatibleExport if a bound is not a number."""
        unit, subject = self.policy.unit_column, self.policy.subject_column
        columns = {unit, f"first_{unit}", f"last_{unit}", subject}
        values = [request.get(name) for name in ("since", "until")]
        values += [value for gap in gaps for name, value in gap.items() if name in columns]
        if any(type(value) is not int for value in values):
            raise IncompatibleExport(
                f"the existing dataset contains an invalid {self.policy.unit_name}",
                hint=CHOOSE_FOLDER.capitalize(),
            )

    def _check_bounds(self, request: dict[str, Any]) -> None:
        """Raise IncompatibleExport if the bounds do not extend those of an earlier *request*."""
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

    def is_relative(self, bound: str) -> bool:
        """Return whether a bound depends on the chain head: omitted, an age, a negative number."""
        return not self.policy.is_listed and is_relative(self.call.arguments.get(bound))

    def list_chunks(self) -> list[Chunk]:
        """Return the calls: first those for open gaps, then those for new rows."""
        gaps = sorted(self.open_gaps, key=lambda gap: self.get_gap_bounds(gap)[0])
        chunks = [self.build_gap_chunk(gap) for gap in gaps]
        # Only listed units have a fixed end.
        is_listed = self.policy.is_listed
        requested = self.requested.intervals if is_listed else ((self.since, self.until),)
        parts = clip_intervals(requested, self.start, self.until)
        blocks = self.split_subjects()
        size = max(map(len, blocks))
        intervals = [interval for part in parts for interval in self.split_interval(part, size)]
        if self.by_subject:
            return chunks + [Chunk(block, *ends) for block in blocks for ends in intervals]
        return chunks + [Chunk(block, *ends) for ends in intervals for block in blocks]

    def load_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of one chunk after the other."""
        chunks, progress = self.list_chunks(), LOAD.get().progress
        if progress is not None:
            progress.expect_loads(len(chunks))
        for chunk in chunks:
            rows, gaps = self.call.load(**self.build_arguments(chunk))
            self.source.gaps += gaps
            if progress is not None:
                progress.count_load()
            rows = self.call.mark_final(rows, pl.col(self.policy.unit_column) <= self.last_final)
            yield rows if chunk.gap is None else select_gap(rows, chunk.gap)
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

    def split_subjects(self) -> list[list[int | str]]:
        """Return the validators of each call."""
        window = min(self.window, max(self.until - self.start + 1, 1))
        size = max(CHUNK_ROWS // window // 100, 1) * 100
        subjects = self.subjects
        if not self.by_subject:
            return [subjects[i : i + size] for i in range(0, len(subjects), size)] or [[]]

        def get_partition(subject: int | str) -> int | str:
            return subject // VALIDATORS_PER_PARTITION if isinstance(subject, int) else "keys"

        return [list(group) for _, group in groupby(subjects, get_partition)] or [[]]

    def split_interval(self, part: tuple[int, int], size: int) -> Iterator[tuple[int, int]]:
        """Yield the intervals of units of each call, which has up to *size* validators."""
        # A chunk is a whole number of requests, which the loader sends concurrently.
        window = min(self.window, part[1] - part[0] + 1)
        units = CHUNK_ROWS // size if size else CHUNK_UNITS
        length = max(units // window, 1) * window
        for first in range(part[0], part[1] + 1, length):
            yield first, min(first + length - 1, part[1])

    def build_arguments(self, chunk: Chunk) -> dict[str, Any]:
        """Return the arguments of the call for a *chunk*."""
        arguments: dict[str, Any] = {}
        if chunk.subjects and self.policy.subject is not None:
            arguments[self.policy.subject.arguments()[0]] = chunk.subjects
        if self.policy.is_listed:
            units = range(chunk.first, chunk.last + 1)
            return arguments | {self.policy.unit.arguments()[0]: units}
        return arguments | {"since": chunk.first, "until": chunk.last}

    def is_requestable(self, gap: dict[str, Any]) -> bool:
        """Return whether a gap states its units or its validator."""
        unit = self.policy.unit_column
        return not gap.keys().isdisjoint((self.policy.subject_column, unit, f"first_{unit}"))

    def build_gap_chunk(self, gap: dict[str, Any]) -> Chunk:
        """Return the call that requests the rows of a published gap again."""
        first, last = self.get_gap_bounds(gap)
        column = self.policy.subject_column
        subjects = [gap[column]] if column in gap else [*self.subjects]
        return Chunk(subjects, max(first, self.since), min(last, self.until), gap)

    def get_gap_bounds(self, gap: dict[str, Any]) -> tuple[int, int]:
        """Return the first and the last unit of a gap."""
        unit = self.policy.unit_column
        first = gap.get(f"first_{unit}", gap.get(unit, self.since))
        last = gap.get(f"last_{unit}", gap.get(unit, self.start - 1))
        return int(first), int(last)


def select_gap(rows: pl.DataFrame, gap: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of a published *gap*: it may be one slot of an epoch that is published."""
    for name in rows.columns:
        low = gap.get(f"first_{name}", gap.get(name))
        if type(low) is int:
            rows = rows.filter(pl.col(name).is_between(low, gap.get(f"last_{name}", low)))
    return rows


def format_intervals(intervals: Intervals, *others: str) -> str:
    """Return intervals of numbers, and *others*, as text."""
    return join_items([*(f"{first}-{last}" for first, last in intervals), *others])
