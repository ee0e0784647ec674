"""Intervals of epochs, slots or days: sorted, disjoint, both ends included."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
