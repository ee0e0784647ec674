"""Balances of a report that its income explains."""

from __future__ import annotations

import functools

import polars as pl

from .source import HEAD, KEYS, NO_SOURCE, NO_TARGET, SOURCE, SUMS, TARGET, Source


@functools.cache
def _reconcile(source: Source) -> pl.DataFrame:
    """Return each change of a balance, and what explains it.

    A balance is read after the first block of its epoch. Where that block may have paid the
    validator something, the epochs on both sides are one row: their sum is exact.
    """
    since = source.first + source.offset
    until = source.last - 1
    paid = pl.sum_horizontal([*SUMS["proposal_reward_gwei"], "slashing_reward_gwei"])
    reward, penalty = pl.col("sync_committee_reward_gwei"), pl.col("sync_committee_penalty_gwei")
    slashed = pl.col("slashing_penalty_gwei")
    parts = source.income.select(
        *KEYS,
        low=-penalty - slashed,
        high=paid + reward,
        blocks=paid + reward - penalty - slashed,
        votes=HEAD
        + SOURCE
        + TARGET
        - NO_SOURCE
        - NO_TARGET
        - pl.col("finality_delay_penalty_gwei"),
    )
    inside = {(index, epoch): rest for index, epoch, *rest in parts.iter_rows()}
    balances = source.balances.select(*KEYS, "balance_gwei")
    balance = {(index, epoch): gwei for index, epoch, gwei in balances.iter_rows()}
    moved: dict[tuple[int, int], int] = {}
    for index, slot, gwei in source.withdrawals.select(
        "validator_index", "slot", "amount_gwei"
    ).iter_rows():
        key = (index, (slot - 1) // source.slots)
        moved[key] = moved.get(key, 0) + gwei
    none = [0, 0, 0, 0]
    rows: list[dict] = []
    for index in source.mine:
        for epoch in range(since, until + 1):
            if (index, epoch) not in balance or (index, epoch + 1) not in balance:
                continue
            low, high, blocks, _ = inside.get((index, epoch), none)
            next_low, next_high = inside.get((index, epoch + 1), none)[:2]
            is_open = low != high
            row = {
                "validator_index": index,
                "epoch": epoch,
                "until_epoch": epoch,
                "change_gwei": balance[index, epoch + 1] - balance[index, epoch],
                "income_gwei": blocks + inside.get((index, epoch - source.offset), none)[3],
                "withdrawals_gwei": moved.get((index, epoch), 0),
                "start": (low, high),
                "end": (next_low, next_high),
                "open_start_slot": epoch * source.slots if is_open else None,
                "open_end_slot": (epoch + 1) * source.slots if next_low != next_high else None,
            }
            last = rows[-1] if rows else None
            if (
                is_open
                and last
                and (last["validator_index"], last["until_epoch"]) == (index, epoch - 1)
            ):
                for name in ("change_gwei", "income_gwei", "withdrawals_gwei"):
                    last[name] += row[name]
                last |= {name: row[name] for name in ("until_epoch", "end", "open_end_slot")}
            else:
                rows.append(row)
    for row in rows:
        rest = row["change_gwei"] - row["income_gwei"] + row["withdrawals_gwei"]
        (low, high), (next_low, next_high) = row.pop("start"), row.pop("end")
        least, most = next_low - high, next_high - low
        row["ends_gwei"] = min(max(rest, least), most)
        row["unexplained_gwei"] = rest - row["ends_gwei"]
        row["least"], row["most"] = rest - most, rest - least
    return pl.DataFrame(rows, infer_schema_length=None)


def query_reconciliation(source: Source) -> pl.DataFrame:
    """How many changes of balances are explained."""
    rows = _reconcile(source)
    rest = query_unexplained(source)
    return pl.DataFrame(
        {
            "changes": [rows.height],
            "explained": [rows.height - rest.height],
            "unexplained": [rest.height],
            "unexplained_gwei": [rest["unexplained_gwei"].sum()],
            "with_possible_cause": [rest["possible_cause"].count()],
        }
    )


@functools.cache
def query_unexplained(source: Source) -> pl.DataFrame:
    """The changes that are not explained, with deposits and consolidations that may explain them.

    A deposit has the time of its transaction. Opposite amounts of two validators may be one move.
    """
    rows = _reconcile(source).filter(pl.col("unexplained_gwei") != 0)
    deposits = []
    if source.has("deposits"):
        keys = source.validators.select("pubkey", "validator_index").lazy()
        found = source.scan("deposits").join(keys, on="pubkey").collect()
        deposits = found.select("validator_index", "time", "amount_gwei").rows()
    causes = []
    for row in rows.iter_rows(named=True):
        others = rows.filter(
            pl.col("unexplained_gwei") == -row["unexplained_gwei"],
            pl.col("epoch") <= row["until_epoch"],
            pl.col("until_epoch") >= row["epoch"],
        )
        way = "from" if row["unexplained_gwei"] > 0 else "into"
        texts = {f"consolidation {way} validator {i}" for i in others["validator_index"]}
        texts |= {
            f"deposit of {time:%Y-%m-%d %H:%M:%S}"
            for index, time, gwei in deposits
            if index == row["validator_index"]
            and row["least"] <= gwei <= row["most"]
            and time <= source.time(row["until_epoch"] + 1)
        }
        causes.append("; ".join(sorted(texts)) or None)
    return rows.drop("least", "most").with_columns(
        deposits_gwei=pl.lit(0, pl.Int64),
        consolidations_gwei=pl.lit(0, pl.Int64),
        possible_cause=pl.Series(causes, dtype=pl.String),
        attestations_settle=pl.lit(source.offset),
    )
