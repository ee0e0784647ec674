"""What is missing is asked for in the fewest requests: held against minima found otherwise."""

from __future__ import annotations

import random
import time
from functools import cache
from itertools import combinations

import pytest

from beaconframes.endpoint.intervals import (
    Rectangle,
    clip_intervals,
    cover_missing,
    intervals_of,
    subtract_intervals,
)

ALL = ((0, 199),)


def lacking(validators, *parts):
    """What these validators lack: the same for each."""
    return {str(index): tuple(parts) for index in validators}


def cells(missing):
    """The single missing cells."""
    return {(s, u) for s, parts in missing.items() for a, b in parts for u in range(a, b + 1)}


def covered(rectangles):
    """The single cells that the rectangles ask for."""
    return {(s, u) for r in rectangles for s in r.subjects for u in range(r.first, r.last + 1)}


def at_least(missing, subjects, units):
    """Requests that no way of asking can do without.

    Requests for two units that lie a window apart are different ones, and one unit takes a request
    for every so many who lack it: so any choice of units that far apart is a lower bound.
    """
    need = {}
    for _, unit in cells(missing):
        need[unit] = need.get(unit, 0) + 1
    best = {}
    for unit in sorted(need):
        before = max((n for other, n in best.items() if other <= unit - units), default=0)
        best[unit] = max(before + -(-need[unit] // subjects), max(best.values(), default=0))
    return max(best.values(), default=0)


def exactly(missing, subjects, units):
    """The least number of requests, by trying every way. For small cases."""

    @cache
    def go(state):
        if not any(state):
            return 0
        first = min(left[0] for left in state if left)
        must = {n for n, left in enumerate(state) if left and left[0] == first}
        may = [n for n, left in enumerate(state) if left and first < left[0] < first + units]
        asked = -(-len(must) // subjects)
        free = min(asked * subjects - len(must), len(may))
        return asked + min(
            go(
                tuple(
                    tuple(u for u in left if u >= first + units) if n in {*must, *more} else left
                    for n, left in enumerate(state)
                )
            )
            for more in combinations(may, free)
        )

    return go(tuple(tuple(sorted(u for s, u in cells(missing) if s == one)) for one in missing))


SHAPES = {
    "nothing is there": (lacking(range(250), (0, 249)), 9),
    "everything is there": (lacking(range(250)), 0),
    "one cell": (lacking([7], (13, 13)), 1),
    "half of the validators": (lacking(range(0, 100, 2), (0, 199)), 2),
    "the second half of the epochs": (lacking(range(100), (100, 199)), 1),
    "the ends of the range": (lacking(range(100), (0, 36), (263, 299)), 2),
    "a hole across two windows": (lacking(range(100), (90, 110)), 1),
    "two holes within a window": (lacking(range(100), (3, 9), (60, 102)), 1),
    "two holes a window apart": (lacking(range(100), (3, 9), (60, 103)), 2),
    "every other epoch": (lacking(range(100), *((n, n) for n in range(0, 100, 2))), 1),
    "what is left of other windows": (lacking(range(100), (37, 299)), 3),
    "an L": (lacking(range(50), (0, 199)) | lacking(range(50, 100), (100, 199)), 2),
    "stairs": ({str(n): ((n, 199),) for n in range(100)}, 2),
    "stairs of a few epochs each": ({str(n): ((n, n + 3),) for n in range(150)}, 2),
    "two halves of many": (lacking(range(75), (0, 99)) | lacking(range(75, 150), (100, 199)), 2),
    "a long one among short ones": (lacking([0], (0, 999)) | lacking(range(1, 9), (500, 599)), 10),
    "one too many": (lacking(range(101), (0, 0)), 2),
    "one too many, elsewhere": (lacking(range(100), (0, 99)) | lacking([100], (5000, 5000)), 2),
    "places that are free": (lacking(range(130), (0, 99)) | lacking(range(130, 200), (50, 99)), 2),
    "free places go to who needs less": (
        lacking(range(150), (0, 0)) | lacking(range(150, 200), (50, 149))
        | lacking(range(200, 250), (60, 60)),
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_fewest_requests(shape):
    """Batches of 100 and windows of 100: all that is missing, in requests no fewer would do."""
    missing, expected = SHAPES[shape]
    found = cover_missing(missing, batch_limit=100, window=100)

    assert expected == len(found)
    assert expected == at_least(missing, 100, 100)
    assert cells(missing) <= covered(found)
    assert all(len(r.subjects) <= 100 and r.last - r.first < 100 for r in found)


@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_is_asked_for_in_vain(shape):
    """A rectangle begins and ends with something missing, and each of its subjects lacks some."""
    missing, _ = SHAPES[shape]
    lack = cells(missing)
    for one in cover_missing(missing, batch_limit=100, window=100):
        asked = covered([one])

        assert {one.first, one.last} <= {unit for _, unit in asked & lack}
        assert set(one.subjects) == {subject for subject, _ in asked & lack}


def shapes(seed, count, most):
    """Small shapes, with batches and windows small enough to try every way."""
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
    """As long as all fit into one request, nothing is ever asked in more requests than needed."""
    for missing, subjects, units in shapes(1, 300, lambda subjects: subjects):
        found = cover_missing(missing, batch_limit=subjects, window=units)

        assert exactly(missing, subjects, units) == len(found)
        assert cells(missing) <= covered(found)


def test_minimum_for_several_batches():
    """Of 600 random shapes at most one takes a request more than the best of all ways."""
    more = 0
    for missing, subjects, units in shapes(2, 600, lambda _: 6):
        found = cover_missing(missing, batch_limit=subjects, window=units)
        more += len(found) - exactly(missing, subjects, units)

        assert cells(missing) <= covered(found)
        assert all(len(r.subjects) <= subjects and r.last - r.first < units for r in found)
    assert more <= 1


def test_days_are_asked_for_one_by_one():
    """Without subjects and with one unit a request, it is a request for each that is missing."""
    found = cover_missing({"": ((3, 4), (9, 9))}, batch_limit=1, window=1)

    assert [Rectangle(("",), day, day) for day in (3, 4, 9)] == found


def test_planning_takes_no_time():
    """A thousand validators, each with other gaps in a year of epochs: no minute."""
    dice = random.Random(3)
    missing = {
        str(n): tuple((100 * k + dice.randrange(60), 100 * k + 60 + dice.randrange(30))
                      for k in range(0, 820, 10))
        for n in range(1000)
    }  # fmt: skip
    begun = time.perf_counter()
    found = cover_missing(missing, batch_limit=100, window=100)

    assert time.perf_counter() - begun < 60
    assert 820 <= len(found) <= 825


@pytest.mark.parametrize(
    ("wanted", "there", "left"),
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
def test_wanted_minus_covered(wanted, there, left):
    """What is there already is taken out of what is wanted."""
    assert left == subtract_intervals(wanted, there)


def test_runs():
    """Numbers become runs, whatever order they come in; a range is one without looking."""
    assert ((0, 2), (5, 5), (7, 8)) == intervals_of([8, 5, 0, 1, 2, 7, 7])
    assert ((3, 10**12),) == intervals_of(range(3, 10**12 + 1))
    assert () == intervals_of(range(0)) == intervals_of([])


def test_within():
    """Runs are cut to a range."""
    assert ((5, 7), (9, 9), (12, 12)) == clip_intervals(((0, 7), (9, 9), (12, 20), (30, 31)), 5, 12)
