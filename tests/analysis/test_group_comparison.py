"""Comparison of groups: values of published tables, and no difference by chance."""

import math
import random

import numpy as np
import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.analysis.group_comparison import compute_t_quantile, compute_wilson_interval
from beaconframes.errors import UsageError


@pytest.mark.parametrize(
    ("p", "freedom", "quantile"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.95, 10, 1.812),
        (0.995, 30, 2.750),
        (0.975, 1000, 1.962),
    ],
)
def test_t_quantiles_of_the_table(p, freedom, quantile):
    """Student's t distribution, as printed tables have it."""
    assert quantile == pytest.approx(compute_t_quantile(p, freedom), abs=6e-4)


def test_wilson_interval_of_a_known_example():
    """81 of 263 (Newcombe 1998, table I): 0.2553 to 0.3662; 0 of 20: 0 to 0.1611."""
    assert (0.2553, 0.3662) == pytest.approx(compute_wilson_interval(81, 263), abs=1e-4)
    assert (0.0, 0.1611) == pytest.approx(compute_wilson_interval(0, 20), abs=1e-4)


def test_difference_of_shares_of_a_known_example():
    """56 of 70 and 48 of 80 (Newcombe 1998, table II, method 10): 0.0524 to 0.3339."""
    rows = pl.DataFrame({"group": ["a", "b"], "k": [56, 48], "n": [70, 80]})

    table = analysis.compare_groups(rows, by="group", shares={"share": ("k", "n")})

    first = table.row(0, named=True)
    assert (0.0524, 0.3339) == pytest.approx(
        (first["difference_low"], first["difference_high"]), abs=1e-4
    )
    assert [True, True] == table["differs"].to_list()


def test_shares_without_events_of_the_others_are_not_compared():
    """Only group a had proposals: its share is known, and there is nothing to compare it with."""
    rows = pl.DataFrame({"group": ["a", "b", "b"], "k": [3, 0, 0], "n": [4, 0, 0]})

    table = analysis.compare_groups(rows, by="group", shares={"share": ("k", "n")})

    columns = ("group", "validators", "value", "others", "difference", "differs")
    assert [("a", 1, 0.75, None, None, None), ("b", 0, *[None] * 4)] == table.select(columns).rows()


@pytest.mark.more
def test_chance_is_not_read_as_difference():
    """Of 30 random divisions into four groups, few have a difference; a real one is found."""
    draw = random.Random(5)
    names = [index % 4 for index in range(40)]
    found = 0
    for _ in range(30):
        values = [draw.gauss(1, 0.2) for _ in names]
        rows = pl.DataFrame({"group": names, "value": values})
        found += analysis.compare_groups(rows, by="group", values="value")["differs"].any()
    assert found <= 4

    better = rows.with_columns(pl.col("value") + 0.5 * (pl.col("group") == 2))
    table = analysis.compare_groups(better, by="group", values="value")
    assert table.filter("differs")["group"].to_list().count(2) == 1


def test_rare_losses_are_not_read_as_difference():
    """Many small groups have none of the few large losses; intervals of means exclude 0 for them.

    Of 100 divisions of equal validators, at most 5 % may have a difference, and chance allows more.
    """
    draw = np.random.default_rng(3)
    found = 0
    for _ in range(100):
        lost = draw.poisson(0.3, 100) * 12_000 + (draw.random(100) < 0.03) * 10_000_000
        rows = pl.DataFrame({"group": ["few"] * 5 + ["many"] * 95, "lost": lost})
        found += analysis.compare_groups(rows, by="group", values="lost")["differs"].any()
    assert found <= 10


@pytest.mark.parametrize(
    ("few", "many", "expected"),
    [
        ([9.0] * 3, [0.0, 1.0] * 8, True),
        # A division of 8 validators into two halves has 70 ways; of 4, only 6.
        ([9.0] * 4, [0.0, 1.0] * 2, True),
        ([9.0] * 2, [0.0] * 2, None),
        # Two of the twenty ways have these halves: chance has them in one of ten divisions.
        ([9.0] * 3, [0.0] * 3, None),
        ([9.0, None], [0.0] * 30, None),
        # Of 28 ways, two have means this far apart: below those of the others as well as above.
        ([1.0] * 2, [-1.0] * 2 + [0.0] * 4, False),
        # One of twenty ways, which chance has as often as the level allows.
        ([9.0, 9.0], [9.0] * 3 + [0.0] * 5, False),
    ],
)
def test_few_validators_differ_if_few_divisions_do(few, many, expected):
    """The verdict counts divisions; groups with too few of them have none."""
    rows = pl.DataFrame({"group": ["a"] * len(few) + ["b"] * len(many), "value": few + many})

    table = analysis.compare_groups(rows, by="group", values="value")

    assert [expected, expected] == table["differs"].to_list()


@pytest.mark.parametrize("dead", [2, 3, 4, 5, 6])
def test_a_group_of_dead_validators_differs(dead):
    """Also if some of its validators vote: its own variance, and its interval, are then large."""
    missed = [448] * dead + [2, 7, 3, 4][: 6 - dead] + [n % 7 for n in range(200)]
    rows = pl.DataFrame({"group": ["C"] * 6 + ["others"] * 200, "missed": missed})

    table = analysis.compare_groups(rows, by="group", values="missed", level=0.997)

    assert [True, True] == table["differs"].to_list()


def test_each_measure_is_one_more_comparison():
    """With ten measures, the interval of each is that of a ten times smaller chance."""
    columns = {f"v{n}": [1.0, 2.0, 4.0, 7.0, 3.0, 1.0] for n in range(10)}
    rows = pl.DataFrame({"group": ["a"] * 3 + ["b"] * 3, **columns})

    ten = analysis.compare_groups(rows, by="group", values=list(columns))
    one = analysis.compare_groups(rows, by="group", values="v0", level=0.995)

    ends = ["difference_low", "difference_high"]
    assert one[ends].rows() == ten.filter(measure="v0")[ends].rows()


def test_wrong_arguments_are_explained():
    rows = pl.DataFrame({"group": ["a", "b"], "value": [1, 2], "k": [1, 9], "n": [3, 3]})
    with pytest.raises(UsageError, match=r"k is not a part of n.*\(part, whole\)"):
        analysis.compare_groups(rows, by="group", shares={"share": ("k", "n")})
    for text in ({"values": "text"}, {"shares": {"share": ("k", "text")}}):
        with pytest.raises(UsageError, match="the column text holds String, not numbers"):
            analysis.compare_groups(rows.with_columns(text=pl.lit("x")), by="group", **text)
    with pytest.raises(UsageError, match="by='value' is a column that the function"):
        analysis.compare_groups(rows, by="value", values="k")
    with pytest.raises(UsageError, match="level='a' is not between 0 and 1"):
        analysis.compare_groups(rows, by="group", values="k", level="a")


def test_one_validator_has_no_interval():
    """Without a second validator, the variation is unknown; nothing is compared with nothing."""
    rows = pl.DataFrame({"group": ["a", "b", "b"], "value": [1.0, 2.0, 4.0]})

    table = analysis.compare_groups(rows, by="group", values="value")

    assert [("a", 1, 1.0, None, 3.0, -2.0, None)] == table.filter(pl.col("group") == "a").select(
        *("group", "validators", "value", "low", "others", "difference", "differs")
    ).rows()
    with pytest.raises(UsageError, match="nothing to compare"):
        analysis.compare_groups(rows, by="group")


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 3.7, 30, 201, 4999, 5001])
@pytest.mark.parametrize("p", [0.6, 0.975, 0.9995])
def test_quantiles_have_nine_digits(p, freedom):
    """The integral of the density, over the angle, to the quantile is the probability."""
    t = compute_t_quantile(p, freedom)
    angle = math.atan(t / math.sqrt(freedom))
    nodes, weights = np.polynomial.legendre.leggauss(100)
    heights = np.cos((nodes + 1) * angle / 2) ** (freedom - 1)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))

    area = angle / 2 * float(weights @ heights) * scale / math.sqrt(math.pi)
    density = scale / math.sqrt(math.pi * freedom) * (1 + t * t / freedom) ** (-(freedom + 1) / 2)

    # The error of the quantile is the error of the probability over the density.
    assert abs(0.5 + area - p) / density / t < 1e-9
