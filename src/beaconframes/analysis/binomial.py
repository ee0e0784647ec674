"""Exact binomial probabilities, confidence intervals and p-values.

Written here because nothing else in the package needs scipy. Probabilities are accurate to about
twelve digits for any number of slots: they use the saddle-point expansion (Loader, 2000) instead
of differences of large logarithms.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
_EXACT_BELOW = 16  # below this the logarithm is more accurate than the series
_NEAR = 0.1


def compute_probability(k: int, n: int, p: float) -> float:
    """Return the probability of exactly *k* successes in *n* trials of probability *p*."""
    if p in {0.0, 1.0}:
        return float(k == n * p)
    if k in {0, n}:
        return math.exp(n * (math.log1p(-p) if k == 0 else math.log(p)))
    gap = _compute_stirling_error(n) - _compute_stirling_error(k) - _compute_stirling_error(n - k)
    deviance = _compute_deviance(k, n * p) + _compute_deviance(n - k, n * (1 - p))
    return math.exp(gap - deviance) * math.sqrt(n / (2 * math.pi * k * (n - k)))


def compute_lower_tail(k: int, n: int, p: float) -> float:
    """Return the probability of *k* or fewer successes."""
    if k >= n:
        return 1.0
    if k > n * p:
        return 1.0 - compute_upper_tail(k + 1, n, p)
    total = term = compute_probability(k, n, p)
    while k > 0 and term > total * 1e-18:
        term *= k * (1 - p) / ((n - k + 1) * p)
        total += term
        k -= 1
    return total


def compute_upper_tail(k: int, n: int, p: float) -> float:
    """Return the probability of *k* or more successes."""
    if k <= 0:
        return 1.0
    if k < n * p:
        return 1.0 - compute_lower_tail(k - 1, n, p)
    total = term = compute_probability(k, n, p)
    while k < n and term > total * 1e-18:
        term *= (n - k) * p / ((k + 1) * (1 - p))
        total += term
        k += 1
    return total


def compute_p_value(k: int, n: int, p: float) -> float:
    """Return the two-sided p-value of *k*: twice the smaller tail, at most 1."""
    return min(1.0, 2 * min(compute_lower_tail(k, n, p), compute_upper_tail(k, n, p)))


def adjust_p_values(values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values of several statements, corrected for their number (Holm).

    Where all is chance, the probability that any of them is below a level is at most that level.
    None is no statement.
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    found: list[float | None] = [None] * len(values)
    largest = 0.0
    for step, (value, place) in enumerate(known):
        largest = min(1.0, max(largest, value * (len(known) - step)))
        found[place] = largest
    return found


@functools.lru_cache(maxsize=4096)
def compute_interval(k: int, n: int, level: float) -> tuple[float, float]:
    """Return the Clopper-Pearson confidence interval of the probability, for *k* of *n*.

    It contains the true probability at least as often as *level* says.
    """
    tail = (1 - level) / 2
    low = _bisect(lambda p: compute_upper_tail(k, n, p) < tail, 0.0, k / n) if k > 0 else 0.0
    high = _bisect(lambda p: compute_lower_tail(k, n, p) > tail, k / n, 1.0) if k < n else 1.0
    return low, high


@functools.lru_cache(maxsize=4096)
def compute_range(n: int, p: float, level: float) -> tuple[int, int]:
    """Return the central range of the number of successes, which has at least this *level*.

    Fewer successes, and more, each have a probability of at most half of the rest.
    """
    tail = (1 - level) / 2
    low = high = int(n * p)
    if p in {0.0, 1.0}:
        return low, high
    below = compute_lower_tail(low, n, p)
    term = compute_probability(low, n, p)
    up, down = term, term
    total = below
    while high < n and total < 1 - tail:
        up *= (n - high) * p / ((high + 1) * (1 - p))
        high += 1
        total += up
    total = below - term
    while low > 0 and total > tail:
        down *= low * (1 - p) / ((n - low + 1) * p)
        low -= 1
        total -= down
    return low, high


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the point up to which a condition holds, by bisection."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high or high - low < 1e-15 * high:
            return middle
        if holds(middle):
            low = middle
        else:
            high = middle


def _compute_stirling_error(x: int) -> float:
    """Return the logarithm of x! minus that of Stirling's formula."""
    if x < _EXACT_BELOW:
        return math.lgamma(x + 1) - (x + 0.5) * math.log(x) + x - 0.5 * math.log(2 * math.pi)
    return math.fsum(part / x ** (2 * order + 1) for order, part in enumerate(_STIRLING))


def _compute_deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, accurate also where x and mean are close."""
    if abs(x - mean) >= _NEAR * (x + mean):
        return x * math.log(x / mean) + mean - x
    ratio = (x - mean) / (x + mean)
    total, term, order = (x - mean) * ratio, 2 * x * ratio, 1
    while True:
        term *= ratio * ratio
        new_total = total + term / (2 * order + 1)
        if new_total == total:
            return total
        total, order = new_total, order + 1
