"""Intervals of epochs, slots or days, and the fewest requests that cover them.

Intervals are sorted and disjoint; both ends are included. A request takes some subjects, in any
combination, and one interval. Each subject is missing a list of intervals. The requests are
rectangles that together cover all of them. They may cover more: to request a stored unit again
costs nothing extra.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Interval: TypeAlias = "tuple[int, int]"
"""The first and the last unit."""

Intervals: TypeAlias = "tuple[Interval, ...]"
"""Intervals in order; none touches another."""


def merge_intervals(intervals: Iterable[Interval]) -> Intervals:
    """Return *intervals* in order, those that overlap or touch as one."""
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def intervals_of(numbers: Iterable[int]) -> Intervals:
    """Return the *numbers* as intervals."""
    if isinstance(numbers, range) and numbers.step == 1:
        return ((numbers.start, numbers.stop - 1),) if numbers else ()
    return merge_intervals((number, number) for number in numbers)


def numbers_of(intervals: Intervals) -> range | list[int]:
    """Return the numbers in *intervals*; one interval stays a range."""
    if len(intervals) == 1:
        ((first, last),) = intervals
        return range(first, last + 1)
    return [number for first, last in intervals for number in range(first, last + 1)]


def format_numbers(numbers: Iterable[int], most: int | None = None) -> str:
    """Return *numbers* as text: ``1-5, 7``; of more than *most* intervals, the first."""
    intervals = intervals_of(numbers)
    texts = [f"{first}-{last}" if last > first else f"{first}" for first, last in intervals[:most]]
    return ", ".join(texts) + (", ..." if len(intervals) > len(texts) else "")


def count_numbers(intervals: Intervals) -> int:
    """Return how many numbers are in *intervals*."""
    return sum(last - first + 1 for first, last in intervals)


def clip_intervals(intervals: Iterable[Interval], first: int, last: int) -> Intervals:
    """Return the part of *intervals* from *first* to *last*."""
    return tuple((max(a, first), min(b, last)) for a, b in intervals if a <= last and b >= first)


def subtract_intervals(wanted: Sequence[Interval], covered: Sequence[Interval]) -> Intervals:
    """Return the part of *wanted* that is not in *covered*."""
    rest: list[Interval] = []
    position = 0
    for first, last in wanted:
        start = first
        while position < len(covered) and covered[position][1] < start:
            position += 1
        ahead = position
        while ahead < len(covered) and covered[ahead][0] <= last and start <= last:
            if covered[ahead][0] > start:
                rest.append((start, covered[ahead][0] - 1))
            start = covered[ahead][1] + 1
            ahead += 1
        if start <= last:
            rest.append((start, last))
    return tuple(rest)


@dataclass(frozen=True)
class Rectangle:
    """One request: its subjects, and its units from first to last."""

    subjects: tuple[str, ...]
    first: int
    last: int


def cover_missing(
    missing: Mapping[str, Intervals], *, batch_limit: int, window: int
) -> list[Rectangle]:
    """Return the fewest rectangles of *batch_limit* subjects and *window* units for *missing*.

    The result is minimal as long as all subjects fit into one request. With more subjects the
    grouping is a hard problem: two greedy sweeps are compared, and the smaller result is returned.
    """
    missing = {subject: intervals for subject, intervals in missing.items() if intervals}
    forwards = sweep(missing, batch_limit, window)
    if len(missing) <= batch_limit or window == 1:
        return forwards
    mirrored = {subject: mirror(intervals) for subject, intervals in missing.items()}
    backwards = sweep(mirrored, batch_limit, window)
    if len(forwards) <= len(backwards):
        return forwards
    return [Rectangle(r.subjects, -r.last, -r.first) for r in reversed(backwards)]


def mirror(intervals: Intervals) -> Intervals:
    """Return *intervals* with the order of units reversed."""
    return tuple((-last, -first) for first, last in reversed(intervals))


def sweep(missing: Mapping[str, Intervals], batch_limit: int, window: int) -> list[Rectangle]:
    """Return rectangles that cover *missing*, in one pass over the units.

    A request has to start at the first missing unit, for each subject that is missing it: an
    earlier start gains nothing. Free places go to subjects with missing units further on in the
    window, first to those that then need one request less.
    """
    groups: dict[Intervals, list[str]] = {}
    for subject, intervals in missing.items():
        groups.setdefault(intervals, []).append(subject)
    queue = SubjectQueue()
    for intervals, names in groups.items():
        queue.add(intervals[0][0], MissingUnits(intervals, window), names)
    rectangles: list[Rectangle] = []
    while queue.starts:
        first = queue.starts[0]
        end = first + window - 1
        chosen = queue.pop(first)
        # The last request of these subjects may have places for others.
        free = -sum(len(names) for _, names in chosen) % batch_limit
        if free:
            chosen += queue.pop_up_to(end, free)
        names = [name for _, some in chosen for name in some]
        lasts: list[int] = []
        for units, some in chosen:
            lasts += [units.last_missing(end)] * len(some)
        for start in range(0, len(names), batch_limit):
            part = slice(start, start + batch_limit)
            rectangles.append(Rectangle(tuple(names[part]), first, max(lasts[part])))
        for units, some in chosen:
            following = units.next_missing(end + 1)
            if following is not None:
                queue.add(following, units, some)
    return rectangles


class MissingUnits:
    """The missing units of one or several subjects, all of which are missing the same ones."""

    def __init__(self, intervals: Intervals, window: int) -> None:
        self.intervals = intervals
        self._window = window
        self._lasts = [last for _, last in intervals]
        self._counts: dict[int, int] = {}
        """Requests from a unit on, as far as they have been counted."""

    def next_missing(self, unit: int) -> int | None:
        """Return the first missing unit from *unit* on."""
        index = bisect_left(self._lasts, unit)
        return None if index == len(self.intervals) else max(self.intervals[index][0], unit)

    def last_missing(self, end: int) -> int:
        """Return the last missing unit up to *end*."""
        index = bisect_left(self._lasts, end)
        if index < len(self.intervals) and self.intervals[index][0] <= end:
            return end
        return self._lasts[index - 1]

    def count_requests(self, start: int | None) -> int:
        """Return how many requests these subjects alone take from *start* on."""
        starts: list[int] = []
        while start is not None and start not in self._counts:
            starts.append(start)
            start = self.next_missing(start + self._window)
        known = 0 if start is None else self._counts[start]
        for count, unit in enumerate(reversed(starts), known + 1):
            self._counts[unit] = count
        return known + len(starts)

    def count_requests_after(self, end: int) -> int:
        """Return how many requests these subjects alone take after *end*."""
        return self.count_requests(self.next_missing(end + 1))


class SubjectQueue:
    """Subjects by their first missing unit; those that are missing the same are together."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self._subjects: dict[int, dict[MissingUnits, list[str]]] = {}

    def add(self, start: int, units: MissingUnits, names: list[str]) -> None:
        """Add the subjects *names* with their missing *units* at the first missing unit."""
        if start not in self._subjects:
            self._subjects[start] = {}
            insort(self.starts, start)
        self._subjects[start].setdefault(units, []).extend(names)

    def pop(self, start: int) -> list[tuple[MissingUnits, list[str]]]:
        """Remove and return all subjects at *start*."""
        del self.starts[bisect_left(self.starts, start)]
        return list(self._subjects.pop(start).items())

    def pop_up_to(self, end: int, free: int) -> list[tuple[MissingUnits, list[str]]]:
        """Remove and return up to *free* subjects that start by *end*.

        Subjects that then need one request less come first, then the others by their start.
        """
        chosen: list[tuple[MissingUnits, list[str]]] = []
        for must_save in (True, False):
            for start in self.starts[: bisect_left(self.starts, end + 1)]:
                for units in list(self._subjects[start]):
                    saves = units.count_requests(start) != units.count_requests_after(end)
                    if must_save and not saves:
                        continue
                    names = self._subjects[start][units]
                    chosen.append((units, names[:free]))
                    free -= len(chosen[-1][1])
                    self._put_back(start, units, names[len(chosen[-1][1]) :])
                    if not free:
                        return chosen
        return chosen

    def _put_back(self, start: int, units: MissingUnits, names: list[str]) -> None:
        if names:
            self._subjects[start][units] = names
            return
        del self._subjects[start][units]
        if not self._subjects[start]:
            self.pop(start)
