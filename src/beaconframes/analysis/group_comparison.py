"""Comparison of groups of validators, with intervals, so that chance is not read as difference."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.analysis.engines import check_level, list_columns, open_frame, return_table
from beaconframes.errors import UsageError
from beaconframes.frames import collect
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narwhals.stable.v2.typing import IntoFrameT

_SCHEMA: dict[str, Any] = {
    "measure": pl.String,
    "validators": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "others": pl.Float64,
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "differs": pl.Boolean,
}
_LOADER = "analysis.performance"
_MANY_DEGREES = 5_000
"""Degrees of freedom above which the expansion around the normal distribution is as exact."""
_MIN_DRAWS, _BATCH = 2_000, 100
"""Random divisions of the validators, and how many of them are in memory at once."""


@show_elapsed
def compare_groups(
    frame: IntoFrameT,
    *,
    by: str,
    values: str | Sequence[str] = (),
    shares: Mapping[str, tuple[str, str]] | None = None,
    level: float = 0.95,
) -> IntoFrameT:
    """Compare each group of validators with all others. One row per group and measure.

    Parameters
    ----------
    frame
        One row per validator, such as `analysis.performance` returns it, with a group column.
    by
        The group column. Validators with null belong to no group, and are left out.
    values
        Columns to compare by their mean over validators, such as ``"apr_on_effective"``. The
        interval follows from the differences between the validators of a group (Welch).
    shares
        Shares to compare, each by two columns of counts: ``{"proposed": ("proposals_proposed",
        "proposals_drawn")}``. The interval is Wilson's, that of a difference Newcombe's. Events
        must be independent, as proposals are. Missed votes are not: compare them by *values*.
    level
        Confidence level of the intervals.

    Returns
    -------
    The same kind of frame
        The column of *by*, ``measure``, number of ``validators`` with a value, the ``value`` of the
        group from ``low`` to ``high``, that of all ``others``, and the ``difference`` from
        ``difference_low`` to ``difference_high``. These intervals are wider than *level*, because
        there are several groups and measures (Bonferroni). ``differs`` is whether the difference is
        more than chance. For *shares*, its interval does not contain 0. For *values*, a random
        division of the validators rarely has a difference this large (permutation test): the
        interval can contain 0, if the validators of a small group differ much from each other.
        It is null where there are too few validators. Intervals are null for a single validator.
        Sorted by measure and group. This computes eagerly.
    """
    check_level(level)
    list_columns(by, _SCHEMA)
    if not isinstance(by, str):
        raise UsageError(f"by={by!r} is not one column", hint='Pass its name: by="group".')
    names, pairs = list_columns(values), dict(shares or {})
    columns = [by, *names, *(name for pair in pairs.values() for name in pair)]
    if not names and not pairs:
        raise UsageError("nothing to compare", hint='Pass values="apr_on_effective", or shares.')
    source = open_frame(frame, columns, loader=_LOADER)
    rows = collect(source).drop_nulls(by)
    _check_numbers(rows.select(columns[1:]))
    groups = rows[by].unique().sort().to_list()
    # Each group is compared with the others: the chance of any false difference stays 1 - level.
    comparisons = (len(groups) if len(groups) > 2 else 1) * (len(names) + len(pairs))
    strict = 1 - (1 - level) / comparisons
    found: list[tuple[object, ...]] = []
    for group in groups:
        own, others = rows.filter(pl.col(by) == group), rows.filter(pl.col(by) != group)
        means = ((n, _compare_means(own[n], others[n], level, strict)) for n in names)
        counts = ((n, _compare_shares(own, others, p, level, strict)) for n, p in pairs.items())
        found += [(group, name, *figures) for name, figures in (*means, *counts)]
    table = pl.DataFrame(found, schema={by: rows.schema[by], **_SCHEMA}, orient="row")
    return return_table(table.sort("measure", by), source, frame)


def _check_numbers(rows: pl.DataFrame) -> None:
    """Raise for a column that has no mean, such as a text. Booleans have one."""
    for name, kind in rows.schema.items():
        if not kind.is_numeric() and kind not in (pl.Boolean, pl.Null):
            raise UsageError(
                f"the column {name} holds {kind}, not numbers",
                hint="Pass columns of numbers as values or shares, and labels as by.",
            )


def _compare_means(
    own: pl.Series, others: pl.Series, level: float, strict: float
) -> tuple[object, ...]:
    mine, rest = _summarize(own), _summarize(others)
    count, mean, variance = mine
    low = high = difference = first = last = differs = None
    if mean is not None and count > 1:
        margin = compute_t_quantile((1 + level) / 2, count - 1) * math.sqrt(variance / count)
        low, high = mean - margin, mean + margin
    if mean is not None and rest[1] is not None:
        difference = mean - rest[1]
        if count > 1 and rest[0] > 1:
            margin = _compute_welch_margin(mine, rest, strict)
            first, last = difference - margin, difference + margin
            # The interval of a group of which some validators are dead may contain 0.
            differs = _is_rare(own, others, 1 - strict)
    return count, mean, low, high, rest[1], difference, first, last, differs


def _is_rare(own: pl.Series, others: pl.Series, chance: float) -> bool | None:
    """Return whether fewer than *chance* of random divisions have means this far apart.

    Unlike an interval, this holds for few validators, and for losses that are rare and large.
    None if there are too few divisions.
    """
    parts = [known.to_numpy() for known in (_select_known(own), _select_known(others))]
    few = min(map(len, parts))
    values = np.concatenate(sorted(parts, key=len))
    # Of two halves, it does not matter which one is the group.
    ways = math.comb(len(values), few) / (2 if 2 * few == len(values) else 1)
    if chance * ways < 1:
        return None
    values -= values.mean()
    # The means of both parts follow from the sum of one.
    least = abs(values[:few].sum()) * (1 - 1e-9)
    draws = max(_MIN_DRAWS, math.ceil(2 / chance))
    generator, found = np.random.default_rng(0), 0
    for _ in range(0, draws, _BATCH):
        if few * 10 < len(values):
            # With repetitions, which is much faster and makes means a little farther apart.
            chosen = generator.choice(values, (_BATCH, few))
        else:
            chosen = generator.permuted(np.tile(values, (_BATCH, 1)), axis=1)[:, :few]
        found += int((abs(chosen.sum(axis=1)) >= least).sum())
        if found >= chance * draws:
            return False
    return True


def _select_known(values: pl.Series) -> pl.Series:
    return values.cast(pl.Float64).drop_nulls().drop_nans()


def _summarize(values: pl.Series) -> tuple[int, float | None, float]:
    """Return number, mean and variance of the known values."""
    known = _select_known(values)
    mean: Any = known.mean()
    variance: Any = known.var()
    return known.len(), mean, 0.0 if variance is None else variance


def _compute_welch_margin(
    first: tuple[int, float | None, float], second: tuple[int, float | None, float], level: float
) -> float:
    """Return half of the interval of a difference of means with unequal variances."""
    parts = [(variance / count, count - 1) for count, _, variance in (first, second)]
    total = sum(part for part, _ in parts)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(part**2 / n for part, n in parts)
    return compute_t_quantile((1 + level) / 2, freedom) * math.sqrt(total)


def _compare_shares(
    own: pl.DataFrame, others: pl.DataFrame, pair: tuple[str, str], level: float, strict: float
) -> tuple[object, ...]:
    hits, events = pair
    own_hits, own_events = int(own[hits].sum()), int(own[events].sum())
    other_hits, other_events = int(others[hits].sum()), int(others[events].sum())
    if not (0 <= own_hits <= own_events and 0 <= other_hits <= other_events):
        raise UsageError(
            f"{hits} is not a part of {events}", hint="Shares are named by (part, whole)."
        )
    count = own.filter(pl.col(events) > 0).height
    if own_events == 0:
        return count, *([None] * 8)
    share = own_hits / own_events
    low, high = compute_wilson_interval(own_hits, own_events, level)
    if other_events == 0:
        return count, share, low, high, *([None] * 5)
    other_share = other_hits / other_events
    difference = share - other_share
    own_low, own_high = compute_wilson_interval(own_hits, own_events, strict)
    other_low, other_high = compute_wilson_interval(other_hits, other_events, strict)
    first = difference - math.hypot(share - own_low, other_high - other_share)
    last = difference + math.hypot(own_high - share, other_share - other_low)
    differs = first > 0 or last < 0
    return count, share, low, high, other_share, difference, first, last, differs


def compute_wilson_interval(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's confidence interval of a probability, for *k* of *n*."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = k / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    margin = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return max(0.0, middle - margin), min(1.0, middle + margin)


def compute_t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution, for *p* of at least 0.5.

    It has at least nine digits.
    """
    if freedom > _MANY_DEGREES:
        z = NormalDist().inv_cdf(p)
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / freedom + second / freedom**2
    low, high = 0.0, 1.0
    while _compute_upper_tail(high, freedom) > 1 - p:
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _compute_upper_tail(middle, freedom) > 1 - p else (low, middle)
        )
    return low


def _compute_upper_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds a positive *t*."""
    return _compute_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _compute_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _compute_beta(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    value = 0.0
    # More terms than these do not change the value.
    for m in range(30 + int(2 * math.sqrt(max(a, b))), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        value = even / (1 + odd / (1 + value))
    return front / a / (1 - (a + b) * x / (a + 1) / (1 + value))
