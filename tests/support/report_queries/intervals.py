"""Intervals of textbooks: Wilson, Newcombe, Student."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np

from .source import LEVEL


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
            differs = is_rare(own, others, 1 - strict)
    return n, mean, low, high, rest, difference, first, last, differs


def is_rare(own: list[float], others: list[float], chance: float) -> bool | None:
    """Return whether few divisions have means this far apart: all of them, or 20,000 by chance."""
    values, n = np.array([*own, *others]), len(own)
    ways = math.comb(len(values), n)
    if ways < 1 / chance:
        return None
    draw = np.random.default_rng(7)
    divisions = (
        itertools.combinations(values, n)
        if ways < 20_000
        else (draw.permutation(values)[:n] for _ in range(20_000))
    )
    sums = np.array([math.fsum(part) for part in divisions])
    expected = n * values.mean()
    far = abs(sums - expected) >= abs(math.fsum(own) - expected) * (1 - 1e-9)
    return bool(far.mean() < chance)


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
