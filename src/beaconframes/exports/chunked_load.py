"""Walks: a call that is too long for memory, as many short ones, one stretch of time after another.

A walk knows where the export before it ended, and begins there: after what is published, and after
the partitions that a killed export had finished. What was missing is asked for again first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from beaconframes.cache.pubkey_index import BATCH_LIMIT, fetch_keys, resolve_pubkeys
from beaconframes.client.connected import current
from beaconframes.endpoint.cache_policy import CHAIN, CachePolicy
from beaconframes.endpoint.intervals import clip_intervals, intervals_of
from beaconframes.errors import UsageError
from beaconframes.exports.journal import IncompatibleExport
from beaconframes.exports.loader_calls import LoaderCall, called, endpoint_of, short, unwrapped
from beaconframes.exports.partitions import VALIDATORS_EACH
from beaconframes.exports.sources import Source, is_frame, of_frame
from beaconframes.exports.table_descriptions import of_endpoint, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.client import Explorer
    from beaconframes.endpoint.cache_policy import CacheRange
    from beaconframes.endpoint.intervals import Intervals
    from beaconframes.exports.partitions import Partitioning

ROWS_AT_ONCE = 131_072
UNITS_AT_ONCE = 1_000
"""Units that are asked for at a time where nobody knows how many rows they have."""


@dataclass
class ChunkedLoad:
    """The units and subjects of a call, and how far it has come."""

    source: Source
    call: LoaderCall
    keeping: CachePolicy
    want: CacheRange
    since: int
    until: int
    subjects: list[int | str]
    """The validators that are asked for: indices in order, and then the keys that nobody has."""
    refill: tuple[dict[str, Any], ...] = ()
    begin: int = 0
    subject_from: int = 0
    partition: Partitioning | None = None

    @classmethod
    def of(
        cls, source: Source, call: LoaderCall, keeping: CachePolicy, want: CacheRange
    ) -> ChunkedLoad:
        """Return the walk of *call*, which ends at what is final now."""
        finalized = call.chain_head.latest("epoch", finalized=True)
        last = keeping.final_until(call.chain_head, finalized)
        first, until = want.intervals[0][0], min(want.intervals[-1][1], last)
        subjects: list[int | str] = []
        if want.subjects != CHAIN:
            # By index alone, so that nobody is asked for twice and all have their place in order.
            known = indices_of(call.explorer, want.pubkeys) if want.pubkeys else {}
            subjects = [*sorted({*map(int, want.subjects), *known.values()})]
            subjects += [key for key in want.pubkeys if key not in known]
        walk = cls(source, call, keeping, want, first, until, subjects, begin=first)
        source.frames = walk.frames
        source.grows = True
        source.resume = walk.resume
        source.unit = keeping.unit_column
        walk.tell()
        return walk

    @property
    def chain(self) -> Chain:
        """Return the chain that is walked along."""
        return self.call.explorer.chain

    def tell(self) -> None:
        """Say in the source what is asked for."""
        request: dict[str, Any] = {"loader": self.call.function.__name__}
        subject = self.keeping.subject.arguments()[0] if self.keeping.subject else None
        listed = self.keeping.unit.arguments()[0] if self.keeping.is_listed else None
        apart = ("since", "until", subject, listed)
        request |= {k: v for k, v in self.call.others().items() if k not in apart}
        if subject is not None:
            named = () if self.want.subjects == CHAIN else map(int, self.want.subjects)
            request[subject] = spelled(intervals_of(named), *self.want.pubkeys)
        request |= {"unit": self.keeping.unit_name, "since": self.since, "until": self.until}
        if only := self.only(self.since, self.until):
            request["only"] = only
        self.source.request = request
        epoch = self.last_epoch()
        self.source.facts |= {
            "finalized_epoch": epoch,
            "finalized_time": self.chain.time_of("epoch", epoch + 1).isoformat(),
        }

    def only(self, since: int, until: int) -> str:
        """Return the units in between that are asked for; "" where it is each of them."""
        asked = clip_intervals(self.want.intervals, since, until) if self.keeping.is_listed else ()
        return "" if asked in ((), ((since, until),)) else spelled(asked)

    def last_epoch(self) -> int:
        """Return the last epoch that the rows are of: it is final."""
        unit: Any = self.keeping.unit_name
        if unit == "epoch":
            return self.until
        return self.chain.at("epoch", self.chain.time_of(unit, self.until + 1)) - 1

    def resume(
        self,
        there: dict[str, Any],
        begun: dict[str, Any],
        done: list[int],
        gaps: list[dict[str, Any]],
        partition: Partitioning,
    ) -> bool:
        """Begin after what is published *there*, or what an export that was *begun* has *done*.

        Returns whether what was done counts. Raises a DatasetError for another beginning or end.
        """
        self.partition = partition
        asked = [known["request"] for known in (there, begun) if known]
        self._check(asked, [*there.get("gaps", ()), *gaps])
        for before in asked:
            self._continue(before)
        if begun and (self.keeping.is_listed or self.is_open("until")):
            # What a killed export began, it ends, though more has become final since.
            self.until = begun["request"]["until"]
        if there:
            self.begin = there["request"]["until"] + 1
            self.refill = tuple(there["gaps"])
        if done and not self.refill:
            last = max(done)
            if partition.by == "validators":
                self.subject_from = (last + 1) * VALIDATORS_EACH
            else:
                self.begin = max(self.begin, self.after(last))
            self.source.gaps = self.before_here(gaps)
        self.tell()
        return bool(done) and not self.refill

    def before_here(self, gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those of *gaps* that will not be asked for again, as far as they will not."""
        unit, subject = self.keeping.unit_column, self.keeping.subject_column
        found = []
        for gap in gaps:
            if self.subject_from and gap.get(subject or "", -1) < self.subject_from:
                found.append(gap)
            elif not self.subject_from and self.bounds(gap)[0] < self.begin:
                last = f"last_{unit}"
                cut = {last: min(gap[last], self.begin - 1)} if last in gap else {}
                found.append({**gap, **cut})
        return found

    def _check(self, asked: list[dict[str, Any]], gaps: list[dict[str, Any]]) -> None:
        """Refuse what nobody can go on with."""
        unit, subject = self.keeping.unit_column, self.keeping.subject_column
        numbers = {unit, f"first_{unit}", f"last_{unit}", subject}
        told = [request.get(name) for request in asked for name in ("since", "until")]
        told += [value for gap in gaps for name, value in gap.items() if name in numbers]
        if any(type(value) is not int for value in told):
            raise IncompatibleExport(
                f"what is there does not say of which {self.keeping.unit_name} it is",
                hint="Choose another folder, or remove this one",
            )

    def _continue(self, before: dict[str, Any]) -> None:
        unit = self.keeping.unit_name
        # A service may know less of the chain than it did, and then all of what moves with it.
        behind = max(before["until"] - self.until, 0) if self.is_open("until") else 0
        earlier = self.since < before["since"] - behind
        if earlier or (before["since"] != self.since and not self.is_open("since")):
            raise IncompatibleExport(
                f"what is there begins at {unit} {before['since']}, and this "
                f"asks from {self.since} on",
                hint="Give the same since, choose another folder, or remove this one",
            )
        if before["until"] > self.want.intervals[-1][1] and not self.is_open("until"):
            raise IncompatibleExport(
                f"what is there goes up to {unit} {before['until']}, and this "
                f"asks up to {self.until}",
                hint="Give this until or a later one, choose another folder, or remove this one",
            )
        every = f"every {unit}"
        was, now = before.get("only"), self.only(before["since"], before["until"])
        if self.keeping.is_listed and (was or "") != now:
            raise IncompatibleExport(
                f"what is there has {was or every} up to {before['until']}, and this asks for "
                f"{now or every}",
                hint="Give the same ones and later ones, choose another folder, or remove this one",
            )
        self.since = self.begin = before["since"]
        self.until = max(self.until, before["until"])

    def is_open(self, bound: str) -> bool:
        """Tell whether a bound moves with the chain: left out, or counted back from its end."""
        if self.keeping.is_listed:
            return False
        value = self.call.given.get(bound)
        if isinstance(value, str):
            return not value[:4].isdecimal() or "-" not in value
        return value is None or isinstance(value, timedelta) or (type(value) is int and value < 0)

    def after(self, number: int) -> int:
        """Return the first unit that begins after the partition of that number."""
        assert self.partition is not None
        unit: Any = self.keeping.unit_name
        moment = self.partition.end(number, self.chain)
        if moment is None:
            return self.since
        if moment <= self.chain.genesis:
            return 0
        found = self.chain.at(unit, moment)
        return found if self.chain.time_of(unit, found) >= moment else found + 1

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, asked for a stretch at a time."""
        for gap in sorted(self.refill, key=lambda g: self.bounds(g)[0]):
            yield from self.again(gap)
        # What is not listed has no end: more becomes final.
        asked = self.want.intervals if self.keeping.is_listed else ((self.since, self.until),)
        parts = clip_intervals(asked, max(self.since, self.begin), self.until)
        by_subject = self.partition is not None and self.partition.by == "validators"
        blocks = self.blocks(by_subject=by_subject)
        stretches = [stretch for part in parts for stretch in self.stretches(part)]
        order = [(block, s) for s in stretches for block in blocks]
        if by_subject:
            order = [(block, s) for block in blocks for s in stretches]
        calls = (self.asking(block, stretch) for block, stretch in order)
        for arguments in calls:
            rows, gaps = self.call.load(**arguments)
            self.source.note(gaps)
            yield rows

    def blocks(self, *, by_subject: bool) -> list[list[int | str]]:
        """Return the validators that are asked for at a time."""
        subjects = self.subjects
        if not subjects:
            return [[]]
        numbers = [s for s in subjects if isinstance(s, str) or s >= self.subject_from]
        reach = min(self.keeping.window, max(self.until - self.begin + 1, 1))
        size = max(ROWS_AT_ONCE // reach // 100, 1) * 100
        if not by_subject:
            return [numbers[i : i + size] for i in range(0, len(numbers), size)]
        each = groupby(numbers, lambda s: s // VALIDATORS_EACH if isinstance(s, int) else "keys")
        return [list(together) for _, together in each]

    def stretches(self, part: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the runs of units that are asked for at a time."""
        # One request is not made several, and several need not be one after the other.
        reach = min(self.keeping.window, part[1] - part[0] + 1)
        most = ROWS_AT_ONCE // len(self.subjects) if self.subjects else UNITS_AT_ONCE
        length = max(most // reach, 1) * reach
        for first in range(part[0], part[1] + 1, length):
            yield first, min(first + length - 1, part[1])

    def asking(self, block: list[int | str], stretch: tuple[int, int]) -> dict[str, Any]:
        """Return the arguments that ask for *block* in *stretch*."""
        found: dict[str, Any] = {}
        if block and self.keeping.subject is not None:
            found[self.keeping.subject.arguments()[0]] = block
        if self.keeping.is_listed:
            return found | {self.keeping.unit.arguments()[0]: range(stretch[0], stretch[1] + 1)}
        return found | {"since": stretch[0], "until": stretch[1]}

    def again(self, gap: dict[str, Any]) -> Iterator[pl.DataFrame]:
        """Ask once more for what was missing when it was published."""
        first, last = self.bounds(gap)
        column, unit = self.keeping.subject_column, self.keeping.unit_column
        if not gap.keys() & {column, unit, f"first_{unit}"}:
            # It does not say whose rows are missing: all that can be done is to say so again.
            self.source.note([gap])
            return
        whom = [gap[column]] if column in gap else self.subjects
        stretch = max(first, self.since), min(last, self.until)
        rows, gaps = self.call.load(**self.asking(list(whom), stretch))
        self.source.note(gaps)
        yield rows

    def bounds(self, gap: dict[str, Any]) -> tuple[int, int]:
        """Return the first and the last unit of a gap."""
        unit = self.keeping.unit_column
        first = gap.get(f"first_{unit}", gap.get(unit, self.since))
        last = gap.get(f"last_{unit}", gap.get(unit, self.begin - 1))
        return int(first), int(last)


def of_call(
    what: Callable[..., Any],
    table: str | None,
    explorer: Explorer | None,
    arguments: dict[str, Any],
) -> Source:
    """Take a loader and its arguments, or any other function that returns a frame."""
    function, bound = unwrapped(what, arguments)
    endpoint = endpoint_of(function)
    if endpoint is None:
        frame = function(*bound.args, **bound.kwargs)
        if not is_frame(frame):
            raise UsageError(
                f"{called(function)}() returns no frame",
                hint="Give a frame, a function that returns one, or a loader and its arguments",
            )
        return of_frame(frame, table)
    given = dict(bound.arguments)
    asked = explorer or given.get("explorer") or current()
    call = LoaderCall(function, endpoint, asked, given)
    source = Source(of_endpoint(endpoint, table), call.everything, asked.chain, call.facts())
    source.request = {"loader": function.__name__, **call.others()}
    if endpoint.table.keeps_every_field:
        # Only the answer tells which columns there are.
        every = [*call.everything()]
        source.table = with_fields(source.table, every[0].schema)
        source.frames, source.gaps = lambda: iter(every), call.gaps
        return source
    keeping = CachePolicy.of(endpoint)
    want = keeping.cache_range(call.values, call.chain_head) if keeping else None
    if keeping is None or want is None or not want.intervals or not keeping.unit_name:
        source.gaps = call.gaps
        return source
    return ChunkedLoad.of(source, call, keeping, want).source


def indices_of(explorer: Explorer, keys: Sequence[str]) -> dict[str, int]:
    """Return the index of each of the public *keys* that somebody has."""
    if explorer.local_store is not None:
        return resolve_pubkeys(explorer, explorer.local_store, keys)
    batches = (keys[start : start + BATCH_LIMIT] for start in range(0, len(keys), BATCH_LIMIT))
    found = [one for batch in batches for one in fetch_keys(explorer, batch)]
    return {one.pubkey.lower(): one.index for one in found if one.index is not None}


def spelled(numbers: Intervals, *others: str) -> str:
    """Return runs of numbers, and what else there is, in few words."""
    return short([*(f"{first}-{last}" for first, last in numbers), *others])
