"""Binomial probabilities, intervals and p-values, compared with integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes.analysis.binomial import (
    adjust_p_values,
    compute_interval,
    compute_lower_tail,
    compute_p_value,
    compute_probability,
    compute_range,
    compute_upper_tail,
)


def exact(k, n, p):
    """The probability in fractions; *p* is what the float really is."""
    p = Fraction(p)
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 120), st.integers(0, 120), st.floats(1e-6, 1 - 1e-6))
def test_probabilities_match_fractions(n, k, p):
    """To twelve digits: the probability of one number, and both tails."""
    k = min(k, n)
    each = [exact(i, n, p) for i in range(n + 1)]

    assert math.isclose(each[k], compute_probability(k, n, p), rel_tol=1e-12)
    assert math.isclose(sum(each[: k + 1]), compute_lower_tail(k, n, p), rel_tol=1e-12)
    assert math.isclose(sum(each[k:]), compute_upper_tail(k, n, p), rel_tol=1e-12)


@pytest.mark.parametrize(("k", "n"), [(5, 2_628_000), (300, 2_628_000), (2900, 2_628_000)])
def test_a_year_of_slots(k, n):
    """The probability of one number against integers of thousands of digits."""
    p = 1.1 * k / n
    true = math.log(math.comb(n, k)) + k * math.log(p) + (n - k) * math.log1p(-p)

    assert math.isclose(math.exp(true), compute_probability(k, n, p), rel_tol=1e-9)
    assert math.isclose(
        1,
        compute_lower_tail(k, n, p) + compute_upper_tail(k + 1, n, p),
        rel_tol=1e-12,
    )


def test_intervals_that_have_a_formula():
    """For 0 and for n successes one limit is a root; 2 of 10 is from a printed table."""
    assert 0.0 == compute_interval(0, 10, 0.95)[0]
    assert math.isclose(1 - 0.025 ** (1 / 10), compute_interval(0, 10, 0.95)[1], rel_tol=1e-12)
    assert math.isclose(0.025 ** (1 / 10), compute_interval(10, 10, 0.95)[0], rel_tol=1e-12)
    assert 1.0 == compute_interval(10, 10, 0.95)[1]
    # Clopper and Pearson's interval of 2 in 10 is printed in many books.
    assert (0.0252, 0.5561) == tuple(round(limit, 4) for limit in compute_interval(2, 10, 0.95))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 5000), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_tails_at_the_limits_are_half_of_one_minus_the_level(n, k, level):
    """This makes the interval exact."""
    k = min(k, n)
    low, high = compute_interval(k, n, level)

    assert low <= k / n <= high
    if k > 0:
        assert math.isclose((1 - level) / 2, compute_upper_tail(k, n, low), rel_tol=1e-9)
    if k < n:
        assert math.isclose((1 - level) / 2, compute_lower_tail(k, n, high), rel_tol=1e-9)


def test_intervals_cover_at_least_at_the_level():
    """Summed over all outcomes, for several probabilities."""
    n = 200
    for p in (0.001, 0.01, 0.03, 0.2, 0.5):
        covered = math.fsum(
            compute_probability(k, n, p)
            for k in range(n + 1)
            if compute_interval(k, n, 0.95)[0] <= p <= compute_interval(k, n, 0.95)[1]
        )
        assert 0.95 <= covered <= 1 + 1e-12


def test_p_values():
    """Twice the smaller tail, at most 1; certain events have 1, impossible ones 0."""
    assert math.isclose(2 * 0.5**10, compute_p_value(0, 10, 0.5), rel_tol=1e-12)
    assert math.isclose(2 * 11 * 0.5**10, compute_p_value(9, 10, 0.5), rel_tol=1e-12)
    assert 1.0 == compute_p_value(5, 10, 0.5)
    assert 1.0 == compute_p_value(0, 10, 0.0)
    assert 0.0 == compute_p_value(1, 10, 0.0)
    assert 1.0 == compute_p_value(10, 10, 1.0)


@pytest.mark.parametrize(
    ("n", "p", "level"),
    [(1, 0.5, 0.95), (10, 0.5, 0.95), (64, 0.25, 0.5), (200, 0.001, 0.99), (40, 0.9, 0.8)],
)
def test_ranges_leave_less_than_the_rest_on_both_sides(n, p, level):
    """The range is the narrowest of which both tails have at most half of one minus the level."""
    low, high = compute_range(n, p, level)

    tail = (1 - level) / 2
    below, above = (
        sum(exact(k, n, p) for k in range(low)),
        sum(exact(k, n, p) for k in range(high + 1, n + 1)),
    )
    assert below <= tail
    assert above <= tail
    assert below + exact(low, n, p) > tail
    assert above + exact(high, n, p) > tail


def test_ranges_of_certain_outcomes_and_of_a_year():
    """A share of none or all has one outcome; 2.5 expected proposals a year mean 0 to 6."""
    assert (0, 0) == compute_range(100, 0.0, 0.95)
    assert (100, 100) == compute_range(100, 1.0, 0.95)
    slots = 365 * 7200
    assert (0, 6) == compute_range(slots, 2.5 / slots, 0.95)
    # The normal approximation of a large mean: 1.96 standard deviations.
    low, high = compute_range(slots, 0.01, 0.95)
    deviation = 1.96 * math.sqrt(slots * 0.01 * 0.99)
    assert pytest.approx((slots * 0.01 - deviation, slots * 0.01 + deviation), abs=2) == (low, high)


def test_p_values_of_several_statements():
    """Holm: 4, 3, 2 and 1 times the p-values in their order, never below an earlier one."""
    found = adjust_p_values([0.03, None, 0.01, 0.0301, 0.9])

    assert found == pytest.approx([0.09, None, 0.04, 0.09, 0.9])
    assert [1.0, 1.0] == adjust_p_values([0.9, 0.6])
    assert [] == adjust_p_values([])


def test_one_of_many_statements_is_rarely_false():
    """Of 2,000 pages of ten sets each, 5 % name one by chance; without correction, 40 % would."""
    rng = np.random.default_rng(33)
    pages = rng.binomial(7200, 0.01, (2000, 10))
    p_values = {k: compute_p_value(k, 7200, 0.01) for k in np.unique(pages).tolist()}
    named = [min(adjust_p_values([p_values[k] for k in page])) for page in pages.tolist()]

    share = sum(value < 0.05 for value in named) / 2000
    assert 0.02 < share < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("shares", [[0.3], [0.2, 0.25], [0.1, 0.4, 0.4], [0.0, 0.9]])
def test_changing_shares_are_no_rarer_than_stated(shares):
    """Exact probabilities of independent slots with their own shares, by convolution.

    The variance is the sum of share times rest. The binomial of the mean share has that variance if
    the share does not change; otherwise it is larger, so p-values are too large.
    """
    each = np.repeat(shares, 300 // len(shares))
    exact_ = np.ones(1)
    for share in each:
        exact_ = np.convolve(exact_, [1 - share, share])
    counts = np.arange(301)
    mean = (exact_ * counts).sum()
    variance = (exact_ * (counts - mean) ** 2).sum()
    assert (each * (1 - each)).sum() == pytest.approx(variance)

    binomial = 300 * each.mean() * (1 - each.mean())
    assert (len(shares) == 1) == math.isclose(binomial, variance)
    for k in counts[abs(counts - mean) > 2]:
        tails = exact_[: k + 1].sum(), exact_[k:].sum()
        p_value = compute_p_value(int(k), 300, float(each.mean()))
        assert 2 * min(tails) <= p_value * (1 + 1e-9) + 1e-15
