"""Missing rows are covered by the fewest requests; independent algorithms give the minima."""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations

import pytest

from beaconframes.intervals import (
    Rectangle,
    clip_intervals,
    cover_missing,
    format_numbers,
    intervals_of,
    subtract_intervals,
)

from .support.calls import count_calls

ALL = ((0, 199),)


def gaps(validators, *parts):
    """Return the same missing intervals for each of the validators."""
    return {str(index): tuple(parts) for index in validators}


def list_missing_cells(missing):
    """Return the missing cells: pairs of subject and unit."""
    return {(s, u) for s, parts in missing.items() for a, b in parts for u in range(a, b + 1)}


def list_covered_cells(rectangles):
    """Return the cells that the rectangles request."""
    return {(s, u) for r in rectangles for s in r.subjects for u in range(r.first, r.last + 1)}


def lower_bound(missing, subjects, units):
    """Return a lower bound of the number of requests.

    Two units at least a window apart need different requests. A unit needs one request per batch of
    subjects that are missing it. So any choice of units that far apart gives a lower bound.
    """
    missing_count = {}
    for _, unit in list_missing_cells(missing):
        missing_count[unit] = missing_count.get(unit, 0) + 1
    best = {}
    for unit in sorted(missing_count):
        before = max((n for other, n in best.items() if other <= unit - units), default=0)
        best[unit] = max(
            before + -(-missing_count[unit] // subjects), max(best.values(), default=0)
        )
    return max(best.values(), default=0)


def find_minimum(missing, subjects, units):
    """Return the smallest number of requests by exhaustive search. For small cases."""

    @cache
    def go(state):
        if not any(state):
            return 0
        first = min(left[0] for left in state if left)
        must = {n for n, left in enumerate(state) if left and left[0] == first}
        may = [n for n, left in enumerate(state) if left and first < left[0] < first + units]
        request_count = -(-len(must) // subjects)
        free = min(request_count * subjects - len(must), len(may))
        return request_count + min(
            go(
                tuple(
                    tuple(u for u in left if u >= first + units) if n in {*must, *more} else left
                    for n, left in enumerate(state)
                )
            )
            for more in combinations(may, free)
        )

    return go(
        tuple(
            tuple(sorted(u for s, u in list_missing_cells(missing) if s == one)) for one in missing
        )
    )


SHAPES = {
    "nothing is stored": (gaps(range(250), (0, 249)), 9),
    "everything is stored": (gaps(range(250)), 0),
    "one cell": (gaps([7], (13, 13)), 1),
    "half of the validators": (gaps(range(0, 100, 2), (0, 199)), 2),
    "the second half of the epochs": (gaps(range(100), (100, 199)), 1),
    "the ends of the range": (gaps(range(100), (0, 36), (263, 299)), 2),
    "a gap across two windows": (gaps(range(100), (90, 110)), 1),
    "two gaps within a window": (gaps(range(100), (3, 9), (60, 102)), 1),
    "two gaps a window apart": (gaps(range(100), (3, 9), (60, 103)), 2),
    "every other epoch": (gaps(range(100), *((n, n) for n in range(0, 100, 2))), 1),
    "the rest of other windows": (gaps(range(100), (37, 299)), 3),
    "an L": (gaps(range(50), (0, 199)) | gaps(range(50, 100), (100, 199)), 2),
    "stairs": ({str(n): ((n, 199),) for n in range(100)}, 2),
    "stairs of a few epochs each": ({str(n): ((n, n + 3),) for n in range(150)}, 2),
    "two halves of many": (gaps(range(75), (0, 99)) | gaps(range(75, 150), (100, 199)), 2),
    "a long one among short ones": (gaps([0], (0, 999)) | gaps(range(1, 9), (500, 599)), 10),
    "one too many": (gaps(range(101), (0, 0)), 2),
    "one too many, far away": (gaps(range(100), (0, 99)) | gaps([100], (5000, 5000)), 2),
    "free places": (gaps(range(130), (0, 99)) | gaps(range(130, 200), (50, 99)), 2),
    "free places go to subjects that then need fewer requests": (
        gaps(range(150), (0, 0)) | gaps(range(150, 200), (50, 149))
        | gaps(range(200, 250), (60, 60)),
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_fewest_requests(shape):
    """Batches of 100, windows of 100: all missing cells are covered by the fewest requests."""
    missing, expected = SHAPES[shape]
    found = cover_missing(missing, batch_limit=100, window=100)

    assert expected == len(found)
    assert expected == lower_bound(missing, 100, 100)
    assert list_missing_cells(missing) <= list_covered_cells(found)
    assert all(len(r.subjects) <= 100 and r.last - r.first < 100 for r in found)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_request_is_larger_than_needed(shape):
    """A rectangle starts and ends with a missing unit, and each subject is missing a unit of it."""
    missing, _ = SHAPES[shape]
    missing_cells = list_missing_cells(missing)
    for one in cover_missing(missing, batch_limit=100, window=100):
        requested = list_covered_cells([one])

        assert {one.first, one.last} <= {unit for _, unit in requested & missing_cells}
        assert set(one.subjects) == {subject for subject, _ in requested & missing_cells}


def random_shapes(seed, count, most):
    """Yield small shapes, with batches and windows small enough for exhaustive search."""
    dice = random.Random(seed)
    for _ in range(count):
        subjects, units = dice.choice([2, 3]), dice.choice([1, 2, 3, 4])
        length, share = dice.randint(3, 12), dice.random()
        missing = {
            str(n): intervals_of(u for u in range(length) if dice.random() < share)
            for n in range(dice.randint(1, most(subjects)))
        }
        yield missing, subjects, units


def test_minimum_for_a_batch():
    """The result is minimal if all subjects fit into one request."""
    for missing, subjects, units in random_shapes(1, 300, lambda subjects: subjects):
        found = cover_missing(missing, batch_limit=subjects, window=units)

        assert find_minimum(missing, subjects, units) == len(found)
        assert list_missing_cells(missing) <= list_covered_cells(found)


def test_minimum_for_several_batches():
    """Of 600 random shapes at most one takes one request more than the minimum."""
    more = 0
    for missing, subjects, units in random_shapes(2, 600, lambda _: 6):
        found = cover_missing(missing, batch_limit=subjects, window=units)
        more += len(found) - find_minimum(missing, subjects, units)

        assert list_missing_cells(missing) <= list_covered_cells(found)
        assert all(len(r.subjects) <= subjects and r.last - r.first < units for r in found)
    assert more <= 1


def test_both_sweeps_are_needed():
    """A shape for which only the sweep from the end is minimal, and its mirror image."""
    shape = {"0": ((4, 5),), "1": ((4, 4), (6, 6)), "2": ((2, 2),), "3": ((5, 5), (8, 8))}
    mirrored = {
        subject: tuple((9 - last, 9 - first) for first, last in reversed(intervals))
        for subject, intervals in shape.items()
    }
    for missing in (shape, mirrored):
        found = cover_missing(missing, batch_limit=2, window=3)

        assert find_minimum(missing, 2, 3) == len(found) == 3
        assert list_missing_cells(missing) <= list_covered_cells(found)


def test_days_take_a_request_each():
    """Without subjects and with a window of one unit, each missing unit takes a request."""
    found = cover_missing({"": ((3, 4), (9, 9))}, batch_limit=1, window=1)

    assert [Rectangle(("",), day, day) for day in (3, 4, 9)] == found


@pytest.mark.more
def test_planning_is_fast():
    """300 validators with different gaps in a year of epochs: not each pair is compared."""
    dice = random.Random(3)
    missing = {
        str(n): tuple((100 * k + dice.randrange(60), 100 * k + 60 + dice.randrange(30))
                      for k in range(0, 820, 10))
        for n in range(300)
    }  # fmt: skip
    found, calls = count_calls(cover_missing, missing, batch_limit=100, window=100)

    # In 82 windows, there are 7 million pairs of validators.
    assert 3_000_000 > calls
    assert 246 <= len(found) <= 250


@pytest.mark.parametrize(
    ("wanted", "covered", "left"),
    [
        (ALL, (), ALL),
        (ALL, ALL, ()),
        (ALL, ((0, 99),), ((100, 199),)),
        (ALL, ((100, 199),), ((0, 99),)),
        (ALL, ((50, 59), (70, 70)), ((0, 49), (60, 69), (71, 199))),
        (((10, 20), (30, 40)), ((0, 12), (18, 33), (50, 60)), ((13, 17), (34, 40))),
        (((10, 20), (22, 22)), ((15, 30),), ((10, 14),)),
        (((5, 5),), ((1, 4), (6, 9)), ((5, 5),)),
        ((), ALL, ()),
    ],
)
def test_subtract_intervals(wanted, covered, left):
    """Covered intervals are removed from the wanted ones."""
    assert left == subtract_intervals(wanted, covered)


def test_intervals_of_numbers():
    """Numbers in any order become intervals; a range is not iterated."""
    assert ((0, 2), (5, 5), (7, 8)) == intervals_of([8, 5, 0, 1, 2, 7, 7])
    assert ((3, 10**12),) == intervals_of(range(3, 10**12 + 1))
    assert () == intervals_of(range(0)) == intervals_of([])


def test_clip_intervals():
    """Intervals are clipped to a range."""
    assert ((5, 7), (9, 9), (12, 12)) == clip_intervals(((0, 7), (9, 9), (12, 20), (30, 31)), 5, 12)


def test_numbers_as_text():
    """Runs are ranges; of many intervals, the first are listed."""
    assert "1-3, 7, 9-10" == format_numbers([3, 1, 2, 7, 9, 10])
    assert "1-3, ..." == format_numbers([1, 2, 3, 7, 9], 1)
    assert "" == format_numbers([])
