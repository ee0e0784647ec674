"""Small frames made by hand, in the columns of the loaders, and every chart with a frame."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl

GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
AMOUNTS = [
    "attestation_head_reward_gwei",
    "attestation_source_reward_gwei",
    "attestation_source_penalty_gwei",
    "attestation_target_reward_gwei",
    "attestation_target_penalty_gwei",
    "finality_delay_penalty_gwei",
    "proposer_attestation_inclusion_reward_gwei",
    "proposer_slashing_inclusion_reward_gwei",
    "proposer_sync_inclusion_reward_gwei",
    "sync_committee_reward_gwei",
    "sync_committee_penalty_gwei",
    "slashing_reward_gwei",
    "slashing_penalty_gwei",
]


def epoch_time(number="epoch"):
    return (
        (pl.lit(GENESIS) + pl.duration(seconds=384 * pl.col(number)))
        .cast(pl.Datetime("us", "UTC"))
        .alias("time")
    )


def income(epochs=range(113, 113 + 3 * 225), validators=(1, 2), **amounts):
    """An income history with the same amounts in every row; 113 is the first epoch of a day."""
    amounts = amounts or {"attestation_head_reward_gwei": 1_000_000}
    rows = pl.DataFrame({"validator_index": list(validators)}).join(
        pl.DataFrame({"epoch": list(epochs)}, schema={"epoch": pl.Int64}), how="cross"
    )
    return rows.with_columns(
        epoch_time(),
        *(pl.lit(amounts.get(name, 0), pl.Int64).alias(name) for name in AMOUNTS),
        pl.lit(0, pl.Int64).alias("proposals_missed"),
        pl.lit(Decimal(amounts.get("tx_fee_reward_wei", 0)), pl.Decimal(28, 0)).alias(
            "tx_fee_reward_wei"
        ),
    )


def yields(days=range(1000, 1100)):
    """Yield-index days: APR 3 %, layers 2.5 % and 0.5 %, averages a little below."""
    rates = {"apr": 0.03, "cl_apr": 0.025, "el_apr": 0.005}
    return pl.DataFrame({"day": list(days)}, schema={"day": pl.Int64}).with_columns(
        (pl.lit(GENESIS) + pl.duration(days=pl.col("day")))
        .cast(pl.Datetime("us", "UTC"))
        .alias("time"),
        *(
            pl.lit(rate - window / 100_000).alias(name + (f"_avg_{window}d" if window else ""))
            for name, rate in rates.items()
            for window in (0, 7, 31)
        ),
    )


def blocks(*statuses, signed=256, first=0):
    """A block per status, signed by the first seats."""
    bits = "0x" + ((1 << signed) - 1).to_bytes(64, "little").hex()
    return (
        pl.DataFrame(
            {"slot": range(first, first + len(statuses)), "status": statuses},
            schema={"slot": pl.Int64, "status": pl.String},
        )
        .with_columns(
            epoch=pl.col("slot") // 32,
            sync_aggregate_bits=pl.when(pl.col("status") != "missed").then(pl.lit(bits)),
            sync_aggregate_participation=pl.when(pl.col("status") == "missed")
            .then(0.0)
            .otherwise(signed / 512),
        )
        .with_columns(
            (pl.lit(GENESIS) + pl.duration(seconds=12 * pl.col("slot")))
            .cast(pl.Datetime("us", "UTC"))
            .alias("time")
        )
    )


def committee(members=range(5000, 5512), period=0):
    return pl.DataFrame({"validator_index": list(members)}).with_columns(
        period=pl.lit(period),
        seat=pl.int_range(pl.len()),
        start_epoch=pl.lit(256 * period),
        end_epoch=pl.lit(256 * period + 255),
    )


def day_time(number="day"):
    return (
        (pl.lit(GENESIS) + pl.duration(days=pl.col(number)))
        .cast(pl.Datetime("us", "UTC"))
        .alias("time")
    )


def slot_time(number="slot"):
    return (
        (pl.lit(GENESIS) + pl.duration(seconds=12 * pl.col(number)))
        .cast(pl.Datetime("us", "UTC"))
        .alias("time")
    )


def balances(epochs=range(113, 213), validators=(1, 2), gwei=32_000_000_000):
    """A balance history: each validator has a gwei per epoch more than *gwei*."""
    return income(epochs, validators).select(
        "validator_index",
        "epoch",
        "time",
        balance_gwei=gwei + pl.col("epoch") - min(epochs, default=0),
        effective_balance_gwei=pl.lit(32_000_000_000, pl.Int64),
    )


def totals(epochs, validators=4):
    """The effective balance of all validators in each epoch."""
    return pl.DataFrame({"epoch": list(epochs)}, schema={"epoch": pl.Int64}).with_columns(
        eligible_ether_gwei=pl.lit(32_000_000_000 * validators, pl.Int64)
    )


def attestations(*distances, validators=(7,), first=100):
    """A duty per epoch and validator, by inclusion distance; None is missed."""
    rows = pl.DataFrame({"distance": distances}, schema={"distance": pl.Int64}).with_columns(
        epoch=first + pl.int_range(pl.len())
    )
    slot = 32 * pl.col("epoch")
    return (
        pl.DataFrame({"validator_index": list(validators)}, schema={"validator_index": pl.Int64})
        .join(rows, how="cross")
        .with_columns(
            epoch_time(),
            attester_slot=slot,
            inclusion_slot=slot + pl.col("distance"),
            status=pl.when(pl.col("distance").is_null())
            .then(pl.lit("missed"))
            .otherwise(pl.lit("included")),
        )
        .drop("distance")
    )


def upcoming(*duties):
    """Future duties: validator, slot and kind, as the local explorer and a node return them."""
    return pl.DataFrame(duties, schema=["validator_index", "slot", "duty"], orient="row")


def proposals(*statuses, proposers=(3, 1), first=100):
    """A block per status, of the proposers in turn."""
    return pl.DataFrame(
        {"slot": range(first, first + len(statuses)), "status": statuses},
        schema={"slot": pl.Int64, "status": pl.String},
    ).with_columns(
        slot_time(),
        epoch=pl.col("slot") // 32,
        proposer_index=pl.lit(pl.Series(list(proposers))).gather(
            pl.int_range(pl.len()) % len(proposers)
        ),
    )


def produced(slots, wei=10**16):
    """The same producer reward for each block."""
    return pl.DataFrame({"slot": list(slots)}, schema={"slot": pl.Int64}).with_columns(
        producer_reward_wei=pl.lit(Decimal(wei), pl.Decimal(28, 0))
    )


def transfers(*amounts, days=None):
    """An amount of gwei per day, deposited or withdrawn; the last signature is invalid."""
    return (
        pl.DataFrame(
            {"day": days or range(len(amounts)), "amount_gwei": amounts},
            schema={"day": pl.Int64, "amount_gwei": pl.Int64},
        )
        .with_columns(
            day_time(),
            valid_signature=pl.int_range(pl.len()) < max(1, len(amounts) - 1),
            removed=pl.lit(value=False),
        )
        .drop("day")
    )


def leaderboard(*gwei):
    """Validators with these incomes; each span has ten times the income of the one before."""
    spans = enumerate(("1d", "7d", "31d", "365d", "total"))
    return pl.DataFrame({"gwei": gwei}, schema={"gwei": pl.Int64}).select(
        validator_index=500 + pl.int_range(pl.len()),
        **{f"performance_{span}_gwei": pl.col("gwei") * 10**i for i, span in spans},
    )


def gas(*minutes):
    """A reading of gas fees at each minute: 4, 3, 2 and 1 gwei."""
    tiers = {"rapid_wei": 4, "fast_wei": 3, "standard_wei": 2, "slow_wei": 1}
    return pl.DataFrame({"minute": minutes}, schema={"minute": pl.Int64}).select(
        (pl.lit(GENESIS) + pl.duration(minutes=pl.col("minute")))
        .cast(pl.Datetime("us", "UTC"))
        .alias("time"),
        **{tier: pl.lit(Decimal(gwei * 10**9), pl.Decimal(28, 0)) for tier, gwei in tiers.items()},
    )


def index_statuses(**epochs):
    """Indexed epochs by status, as `index` returns them."""
    rows = [(epoch, status) for status, numbers in epochs.items() for epoch in numbers]
    frame = pl.DataFrame(rows, {"epoch": pl.Int64, "status": pl.String}, orient="row")
    return frame.with_columns(epoch_time()).sort("epoch")


def wall(rows):
    """Writes of the wall: slot (a second after 1970), position, colour and painter."""
    schema = ("slot", "x", "y", "color", "validator_index")
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        time=pl.from_epoch("slot").dt.replace_time_zone("UTC").cast(pl.Datetime("us", "UTC"))
    )


CHARTS = {
    "income": ("income", income, (), {}),
    "income by epoch": ("income", income, (), {"every": "epoch"}),
    "income by component": ("income", income, (), {"by": "component"}),
    "income by component and epoch": (
        "income",
        income,
        (),
        {"by": "component", "every": "epoch"},
    ),
    "income by validator": ("income", income, (), {"by": "validator"}),
    "cumulative income": ("income", income, (), {"cumulative": True}),
    "cumulative income by component": (
        "income",
        income,
        (),
        {"cumulative": True, "by": "component"},
    ),
    "expected income": (
        "expected_income",
        income,
        (yields(range(10)).with_columns(day_end=pl.col("time") + pl.duration(days=1)),),
        {},
    ),
    "effectiveness": ("effectiveness", income, (), {}),
    "effectiveness beside others": (
        "effectiveness",
        income,
        (income(validators=range(60)),),
        {},
    ),
    "calendar": ("calendar", income, (), {}),
    "calendar of missed votes": ("calendar", income, (), {"show": "missed"}),
    "balances": ("balances", balances, (), {}),
    "balances in total": ("balances", balances, (), {"by": "total"}),
    "yield": ("yield_index", yields, (), {}),
    "yield of layers": ("yield_index", yields, (), {"split": True}),
    "participation": ("sync_participation", lambda: blocks(*["proposed"] * 64), (), {}),
    "participation by epoch": (
        "sync_participation",
        lambda: blocks(*["proposed"] * 64),
        (),
        {"every": "epoch"},
    ),
    "members": ("sync_members", lambda: blocks(*["proposed"] * 64), (committee(),), {}),
    "matrix of members": (
        "sync_members",
        lambda: blocks(*["proposed"] * 64),
        (committee(),),
        {"show": "matrix"},
    ),
    "attestations": ("attestations", lambda: attestations(1, 2, None, 1, 3), (), {}),
    "attestations of many": (
        "attestations",
        lambda: attestations(1, 2, None, 1, 3, validators=range(120)),
        (),
        {},
    ),
    "inclusion distance": (
        "attestations",
        lambda: attestations(1, 2, None, 1, 3),
        (),
        {"show": "distance"},
    ),
    "duties": (
        "duties",
        lambda: attestations(1, 2, None, validators=(7, 9)),
        (upcoming((7, 3300, "proposal"), (9, 3300, "attestation")), committee([9])),
        {},
    ),
    "proposals": ("proposals", lambda: proposals("proposed", "missed", "orphaned"), (), {}),
    "rewards of proposals": (
        "proposals",
        lambda: proposals("proposed", "proposed", "missed"),
        (produced([100, 101]),),
        {},
    ),
    "luck": (
        "luck",
        lambda: balances(range(100)),
        (totals(range(100)), proposals("proposed", "missed"), committee(range(512))),
        {},
    ),
    "withdrawals": ("withdrawals", lambda: transfers(10**9, 2 * 10**9, 10**9), (), {}),
    "deposits": ("deposits", lambda: transfers(10**9, 2 * 10**9, 10**9), (), {}),
    "cumulative deposits": (
        "deposits",
        lambda: transfers(10**9, 2 * 10**9, 10**9),
        (),
        {"cumulative": True},
    ),
    "leaderboard": ("leaderboard", lambda: leaderboard(5, 3, 4), (), {}),
    "gas fees": ("gas_fees", lambda: gas(0, 5, 10), (), {}),
    "coverage": ("coverage", balances, (), {}),
    "index coverage": (
        "index_coverage",
        lambda: index_statuses(
            explained=[*range(100, 130), *range(135, 150)],
            unexplained=[130, 131],
            unverified=[150, 151],
        ),
        (),
        {},
    ),
}
