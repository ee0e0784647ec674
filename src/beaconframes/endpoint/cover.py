"""What is missing, as rectangles of subjects and units, in the fewest requests that cover it.

A request takes some subjects, any of them, and a run of units: an epoch, slot or day each. What
one subject lacks is a list of runs, so the requests are rectangles that together cover all runs of
all subjects. They may cover more: what is there already costs nothing to ask for again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Runs: TypeAlias = "tuple[tuple[int, int], ...]"
"""Runs of units, first and last of each, in order and apart from one another."""


@dataclass(frozen=True)
class Rectangle:
    """What one request asks for: each of the subjects, and the units from first to last."""

    subjects: tuple[str, ...]
    first: int
    last: int


def runs(numbers: Iterable[int]) -> Runs:
    """Return the *numbers* as runs."""
    if isinstance(numbers, range) and numbers.step == 1:
        return ((numbers.start, numbers.stop - 1),) if numbers else ()
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def within(parts: Sequence[tuple[int, int]], first: int, last: int) -> Runs:
    """Return what of *parts* lies between *first* and *last*, both included."""
    return tuple((max(a, first), min(b, last)) for a, b in parts if a <= last and b >= first)


def minus(wanted: Sequence[tuple[int, int]], covered: Sequence[tuple[int, int]]) -> Runs:
    """Return the runs of *wanted* that *covered* leaves over."""
    left: list[tuple[int, int]] = []
    at = 0
    for first, last in wanted:
        start = first
        while at < len(covered) and covered[at][1] < start:
            at += 1
        ahead = at
        while ahead < len(covered) and covered[ahead][0] <= last and start <= last:
            if covered[ahead][0] > start:
                left.append((start, covered[ahead][0] - 1))
            start = covered[ahead][1] + 1
            ahead += 1
        if start <= last:
            left.append((start, last))
    return tuple(left)


def fewest(missing: Mapping[str, Runs], *, subjects: int, units: int) -> list[Rectangle]:
    """Return the fewest rectangles of at most so many *subjects* and *units* that cover *missing*.

    With no more subjects than one request takes it is certainly the fewest. With more, the choice
    of who shares a request can be hard; two ways of choosing are tried, and the better one counts.
    """
    lacking = {subject: parts for subject, parts in missing.items() if parts}
    forwards = sweep(lacking, subjects, units)
    if len(lacking) <= subjects or units == 1:
        return forwards
    backwards = sweep({s: mirrored(parts) for s, parts in lacking.items()}, subjects, units)
    if len(forwards) <= len(backwards):
        return forwards
    return [Rectangle(r.subjects, -r.last, -r.first) for r in reversed(backwards)]


def mirrored(parts: Runs) -> Runs:
    """Return *parts* with the order of units reversed."""
    return tuple((-last, -first) for first, last in reversed(parts))


def sweep(missing: Mapping[str, Runs], subjects: int, units: int) -> list[Rectangle]:
    """Return rectangles that cover *missing*, going through the units once.

    Where the first missing unit is, a request has to begin, for everybody who lacks it: nothing is
    gained by beginning earlier. Places that are left in it go to those who lack something further
    on in it, first to those who thereby need a request less.
    """
    alike: dict[Runs, list[str]] = {}
    for subject, parts in missing.items():
        alike.setdefault(parts, []).append(subject)
    waiting = Waiting()
    for parts, names in alike.items():
        waiting.add(parts[0][0], Line(parts, units), names)
    found: list[Rectangle] = []
    while waiting.places:
        first = waiting.places[0]
        end = first + units - 1
        chosen = waiting.take(first)
        free = -sum(len(names) for _, names in chosen) % subjects
        if free:
            chosen += waiting.fill(end, free)
        names = [name for _, some in chosen for name in some]
        lasts = [last for line, some in chosen for last in [line.last_until(end)] * len(some)]
        for start in range(0, len(names), subjects):
            part = slice(start, start + subjects)
            found.append(Rectangle(tuple(names[part]), first, max(lasts[part])))
        for line, some in chosen:
            following = line.from_on(end + 1)
            if following is not None:
                waiting.add(following, line, some)
    return found


class Line:
    """What some subjects lack, all of them the same."""

    def __init__(self, parts: Runs, units: int) -> None:
        self.parts = parts
        self._units = units
        self._lasts = [last for _, last in parts]
        self._requests: dict[int | None, int] = {None: 0}

    def from_on(self, unit: int) -> int | None:
        """Return the first missing unit from *unit* on."""
        at = bisect_left(self._lasts, unit)
        return None if at == len(self.parts) else max(self.parts[at][0], unit)

    def last_until(self, end: int) -> int:
        """Return the last missing unit up to *end*."""
        at = bisect_left(self._lasts, end)
        if at < len(self.parts) and self.parts[at][0] <= end:
            return end
        return self._lasts[at - 1]

    def requests(self, place: int | None) -> int:
        """Return how many requests it takes from *place* on, were it alone."""
        chain: list[int] = []
        while place not in self._requests:
            chain.append(place)  # type: ignore[arg-type]  # None is known from the start
            place = self.from_on(chain[-1] + self._units)
        known = self._requests[place]
        for number, one in enumerate(reversed(chain), known + 1):
            self._requests[one] = number
        return known + len(chain)

    def requests_after(self, end: int) -> int:
        """Return how many requests it takes after *end*, were it alone."""
        return self.requests(self.from_on(end + 1))


class Waiting:
    """Subjects, those alike together, by the first unit that they still lack."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self._at: dict[int, dict[Line, list[str]]] = {}

    def add(self, place: int, line: Line, names: list[str]) -> None:
        """Let *names*, who lack what *line* says, wait at a place."""
        if place not in self._at:
            self._at[place] = {}
            insort(self.places, place)
        self._at[place].setdefault(line, []).extend(names)

    def take(self, place: int) -> list[tuple[Line, list[str]]]:
        """Return who waits at *place*, and let them go."""
        del self.places[bisect_left(self.places, place)]
        return list(self._at.pop(place).items())

    def fill(self, end: int, free: int) -> list[tuple[Line, list[str]]]:
        """Return *free* of those who wait up to *end*, and let them go.

        First those who need a request less for it, then the others, each by their place.
        """
        chosen: list[tuple[Line, list[str]]] = []
        for only_less in (True, False):
            for place in self.places[: bisect_left(self.places, end + 1)]:
                for line in list(self._at[place]):
                    if only_less and line.requests(place) == line.requests_after(end):
                        continue
                    names = self._at[place][line]
                    chosen.append((line, names[:free]))
                    free -= len(chosen[-1][1])
                    self._keep(place, line, names[len(chosen[-1][1]) :])
                    if not free:
                        return chosen
        return chosen

    def _keep(self, place: int, line: Line, names: list[str]) -> None:
        if names:
            self._at[place][line] = names
            return
        del self._at[place][line]
        if not self._at[place]:
            self.take(place)
