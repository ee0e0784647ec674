"""Intervals and tests of textbooks: binomial, Clopper-Pearson, Wilson, Student."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .source import LEVEL


def _list_binomial(n: int, p: float) -> list[float]:
    """Return the probabilities of 0 to n successes; all validators of a chain have no chance."""
    if p >= 1:
        return [0.0] * n + [1.0]
    whole = math.lgamma(n + 1)
    return [
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(p) + (n - k) * math.log1p(-p)
        )
        for k in range(n + 1)
    ]  # fmt: skip


def _sum_tails(k: int, n: int, p: float) -> tuple[float, float]:
    """Return the probabilities of *k* or fewer, and of *k* or more."""
    if p >= 1:
        return float(k >= n), 1.0
    each = [
        math.exp(
            math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
            + i * math.log(p) + (n - i) * math.log1p(-p)
        )
        for i in range(k + 1)
    ]  # fmt: skip
    lower = math.fsum(each)
    return lower, 1 - lower + each[-1]


def compute_clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """Return the probabilities at which *k* or more, and *k* or fewer, have a chance of 2.5 %."""
    tail = (1 - LEVEL) / 2

    def solve(is_below, low: float, high: float) -> float:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if is_below(middle) else (low, middle)
        return low

    low = solve(lambda p: _sum_tails(k, n, p)[1] < tail, 1e-12, k / n) if k else 0.0
    high = solve(lambda p: _sum_tails(k, n, p)[0] > tail, max(k / n, 1e-12), 1 - 1e-12)
    return low, high


def compute_binomial_range(n: int, p: float) -> dict[str, int]:
    """Return the central range: fewer, and more, have a chance of at most 2.5 % each."""
    tail = (1 - LEVEL) / 2
    total, low, high = 0.0, None, None
    for k, probability in enumerate(_list_binomial(n, p)):
        if low is None and total + probability > tail:
            low = k
        total += probability
        if high is None and total >= 1 - tail:
            high = k
            break
    return {"drawn_low": low, "drawn_high": high}


def compute_binomial_p_value(k: int, n: int, p: float) -> float:
    """Return twice the smaller tail, at most 1."""
    return min(1.0, 2 * min(_sum_tails(k, n, p)))


def _describe(values: list[float]) -> tuple[int, float | None, float]:
    """Return number, mean and sample variance."""
    if not values:
        return 0, None, 0.0
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return len(values), mean, squares / (len(values) - 1) if len(values) > 1 else 0.0


def compare_means(own: list[float], others: list[float], strict: float) -> tuple:
    n, mean, variance = _describe(own)
    m, rest, other_variance = _describe(others)
    low = high = difference = first = last = differs = None
    if n > 1:
        margin = compute_t_quantile((1 + LEVEL) / 2, n - 1) * math.sqrt(variance / n)
        low, high = mean - margin, mean + margin
    if mean is not None and rest is not None:
        difference = mean - rest
        if n > 1 and m > 1:
            error = variance / n + other_variance / m
            margin = 0.0
            if error:
                parts = (variance / n) ** 2 / (n - 1) + (other_variance / m) ** 2 / (m - 1)
                margin = compute_t_quantile((1 + strict) / 2, error**2 / parts) * math.sqrt(error)
            first, last = difference - margin, difference + margin
            differs = not first <= 0 <= last
    return n, mean, low, high, rest, difference, first, last, differs


def compute_wilson(k: int, n: int, level: float) -> tuple[float, float]:
    """Return the solutions p of (k/n - p)^2 = z^2 p (1 - p) / n."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    a, b, c = 1 + z * z / n, -(2 * k / n + z * z / n), (k / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def compare_shares(own: tuple[int, int], others: tuple[int, int], strict: float) -> tuple:
    (k, n), (m, total) = own, others
    if not n:
        return (None,) * 8
    interval = compute_wilson(k, n, LEVEL)
    if not total:
        return (k / n, *interval, *(None,) * 5)
    # Newcombe's hybrid score interval.
    (low, high), (other_low, other_high) = (
        compute_wilson(*own, strict),
        compute_wilson(*others, strict),
    )
    p, q = k / n, m / total
    first = p - q - math.sqrt((p - low) ** 2 + (other_high - q) ** 2)
    last = p - q + math.sqrt((high - p) ** 2 + (q - other_low) ** 2)
    return (p, *interval, q, p - q, first, last, not first <= 0 <= last)


def compute_t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution, by bisection of its distribution function.

    That is the integral of cos(angle)^(freedom - 1), where tan(angle) = t / sqrt(freedom).
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(52):
        angle = (low + high) / 2
        heights = np.cos((nodes + 1) * angle / 2) ** (freedom - 1)
        below = 0.5 + scale * angle / 2 * float(weights @ heights)
        low, high = (angle, high) if below < p else (low, angle)
    return math.sqrt(freedom) * math.tan(low)
