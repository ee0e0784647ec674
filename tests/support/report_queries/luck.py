"""Luck of a report: proposals and sync committees that chance would give."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import polars as pl

from .source import KEYS, Source


def query_luck(source: Source) -> pl.DataFrame | None:
    """Proposals beside their expected number."""
    return _correct(source, "luck")


def query_group_luck(source: Source) -> pl.DataFrame | None:
    """Proposals of each group beside their expected number."""
    return _correct(source, "group_luck")


def query_sync_luck(source: Source) -> pl.DataFrame | None:
    """Seats in sync committees beside their expected number."""
    return _correct(source, "sync_luck")


def query_group_sync_luck(source: Source) -> pl.DataFrame | None:
    """Seats of each group beside their expected number."""
    return _correct(source, "group_sync_luck")


def _correct(source: Source, name: str) -> pl.DataFrame | None:
    """Return a table with its p-values corrected for all tables of luck, by Holm's steps."""
    tables = {"luck": _compute_luck(source, []), "sync_luck": _compute_sync_luck(source, [])}
    if source.groups:
        tables["group_luck"] = _compute_luck(source, ["group"])
        tables["group_sync_luck"] = _compute_sync_luck(source, ["group"])
    table = tables.get(name)
    if table is None:
        return None
    known = [t["p_value"].drop_nulls() for t in tables.values() if t is not None]
    values = pl.concat(known).sort().to_list()
    steps = [value * (len(values) - step) for step, value in enumerate(values)]
    corrected = {value: min(1.0, max(steps[: n + 1])) for n, value in enumerate(values)}
    return table.with_columns(
        p_corrected=pl.Series([corrected.get(p) for p in table["p_value"]], dtype=pl.Float64)
    )


def _find_p_value(drawn: int, trials: int, mean: float) -> float | None:
    """Return twice the smaller tail of the binomial distribution, by its recurrence."""
    if not 0 < mean <= 0.9 * trials:
        return None
    with localcontext() as context:
        context.prec = 60
        share = Decimal(mean) / trials
        term, below, odds = (1 - share) ** trials, Decimal(0), share / (1 - share)
        for k in range(drawn):
            below += term
            term *= odds * (trials - k) / (k + 1)
        return float(min(1, 2 * min(below + term, 1 - below)))


def _list_shares(source: Source, keys: list[str]) -> pl.DataFrame:
    """Return the ``share`` of active validators in the balance of all, by epoch."""
    total = pl.col("effective_balances_sum_wei").cast(pl.Int128) // 10**9
    known = dict(source.index.select("day", total.cast(pl.Float64)).iter_rows())
    wanted = range(source.first // source.day, source.last // source.day + 1)
    nearest = [min(known, key=lambda other, day=day: abs(other - day)) for day in wanted]
    days = pl.DataFrame({"day": wanted, "total": [known[day] for day in nearest]})
    periods = source.validators.select("validator_index", "activation_epoch", "exit_epoch")
    epoch = pl.col("epoch")
    rows = (
        source.balances.filter(epoch <= source.last)
        .with_columns(day=epoch // source.day)
        .join(days, on="day")
        .join(periods, on="validator_index")
        .filter(epoch >= pl.col("activation_epoch"), epoch < pl.col("exit_epoch").fill_null(2**62))
        .with_columns(share=pl.col("effective_balance_gwei") / pl.col("total"))
    )
    return rows.join(source.group_of, on="validator_index") if keys else rows


def _compute_luck(source: Source, keys: list[str]) -> pl.DataFrame | None:
    if source.index is None:
        return None
    rows = _list_shares(source, keys)
    proposals = source.blocks.select("status", "epoch", validator_index="proposer_index")
    outcomes = ("proposed", "missed", "orphaned")
    found = []
    for name, part in rows.group_by(keys or pl.lit(0)):
        drawn = part.join(proposals, on=KEYS)["status"].to_list()
        slots = part["epoch"].n_unique() * source.slots
        mean = source.slots * math.fsum(part["share"])
        last = part.filter(pl.col("epoch") == rows["epoch"].max())
        now = source.slots * math.fsum(last["share"])
        found.append(
            {
                **dict(zip(keys, name, strict=False)),
                "slots": slots,
                "expected": mean,
                "drawn": len(drawn),
                **{outcome: drawn.count(outcome) for outcome in outcomes},
                "luck": len(drawn) / mean,
                "p_value": _find_p_value(len(drawn), slots, mean),
                "days_to_next": source.seconds / 86_400 / now if now else None,
            }
        )
    return pl.DataFrame(found).sort(keys) if keys else pl.DataFrame(found)


def _compute_sync_luck(source: Source, keys: list[str]) -> pl.DataFrame | None:
    """Compare seats of committees with those expected when they were drawn, a period before."""
    if source.index is None:
        return None
    rows = _list_shares(source, keys)
    size, now = source.chain.sync_committee_size, source.latest // source.period
    found = []
    drawn_in = {period: max(0, (period - 1) * source.period) for period in range(now + 2)}
    ranged = {p for p, epoch in drawn_in.items() if source.first <= epoch <= source.last}
    for name, part in rows.group_by(keys or pl.lit(0)):
        expected, drawn, periods = 0.0, 0, 0
        for period in sorted(ranged | {now, now + 1}):
            selected = part.filter(pl.col("epoch") == max(0, (period - 1) * source.period))
            own = selected["validator_index"].implode()
            seats = source.scan("sync_committees").filter(pl.col("period") == period).collect()
            if selected.height and seats.height:
                periods += 1
                expected += size * math.fsum(selected["share"])
                drawn += seats.filter(pl.col("validator_index").is_in(own)).height
        if expected:
            seats = periods * size
            found.append(
                {
                    **dict(zip(keys, name, strict=False)),
                    "periods": periods,
                    "seats": seats,
                    "expected": expected,
                    "drawn": drawn,
                    "luck": drawn / expected,
                    "p_value": _find_p_value(drawn, seats, expected),
                    "selected": len(ranged),
                }
            )
    if not found:
        return None
    return pl.DataFrame(found).sort(keys) if keys else pl.DataFrame(found)
