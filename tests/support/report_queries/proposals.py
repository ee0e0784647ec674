"""Proposals of a report, and what missed ones cost."""

from __future__ import annotations

import functools
from datetime import timedelta

import numpy as np
import polars as pl

from .source import SUMS, Source


@functools.cache
def query_proposals(source: Source) -> pl.DataFrame:
    """Slots to propose, with what was received, or what others received within 225 epochs.

    Without a block of others, it is the share of blocks in the rewards of the network.
    """
    columns = ["slot", "epoch", "time", "status", "proposer_index", "graffiti_text"]
    rows = source.blocks.select(columns)
    paid = {}
    if source.received is not None:
        names = ("slot", "producer_reward_wei", "relay_tag")
        paid = {slot: more for slot, *more in source.received.select(names).iter_rows()}
    keys = ["validator_index", "epoch"]
    earned = source.income.select(*keys, "el", cl=pl.sum_horizontal(SUMS["proposal_reward_gwei"]))
    # The rewards of two blocks in one epoch are one sum.
    made = rows.filter(pl.col("status") == "proposed").rename({"proposer_index": "validator_index"})
    several = made.group_by(keys).len().filter(pl.col("len") > 1)
    earned = earned.filter(pl.col("cl") > 0).join(several, on=keys, how="anti")
    extra = []
    for row in rows.iter_rows(named=True):
        reward, relay = paid.get(row["slot"], (None, None))
        cost: list = [None, None, None]
        if row["status"] != "proposed":
            near = earned.filter((pl.col("epoch") - row["epoch"]).abs() <= 225)
            reward = None
            texts = [f"median of {near.height:,} block{'s' * (near.height > 1)}"] * bool(
                near.height
            )
            for place, name in enumerate(("cl", "el")):
                if near.height and not near[name].null_count():
                    # The lower one of the two middle values.
                    cost[place] = sorted(near[name])[(near.height - 1) // 2]
            network = _average_blocks(source, row["epoch"])
            if network and cost[0] is None:
                cost[0], texts = network[0], ["mean of the network", *texts]
            if cost[1] is None and (network or cost[0] is not None):
                cost[1] = network[1] if network else None
                texts.append("execution layer: priority fees of the network")
                texts[-1] = texts[-1] if network else "execution layer: unknown"
            cost[2] = ", ".join(texts) or None
        extra.append((reward, relay, *cost))
    schema = {
        "reward_wei": pl.Decimal(28, 0),
        "relay_tag": pl.String,
        "cost_consensus_gwei": pl.Int64,
        "cost_execution_wei": pl.Decimal(28, 0),
        "cost_basis": pl.String,
    }
    found = rows.hstack(pl.DataFrame(extra, schema, orient="row"))
    return found if source.received is not None else found.drop("reward_wei", "relay_tag")


def _average_blocks(source: Source, epoch: int) -> tuple[int, int] | None:
    """Return 8 of 64 parts of the rewards of a day, and its fees, by slot; in gwei and wei."""
    index, day = source.index, epoch // source.day
    rows = [] if index is None else index.filter(pl.col("day") == day).rows(named=True)
    slots = source.day * source.slots
    for row in rows:
        rewards = int(row["consensus_rewards_sum_wei"])
        if rewards > 0:
            return 8 * rewards // (64 * slots * 10**9), int(row["tx_fees_sum_wei"]) // slots
    return None


def compute_daily_costs(source: Source) -> list[tuple[str, int, int | None, str | None]]:
    """Return what was missed in daily statistics: kind, validator, cost and basis.

    Of validators and days without other duties, the median income is that of votes. What a proposer
    earned beyond it is that of its blocks.
    """
    days = pl.col("day").is_between(source.first // source.day, source.last // source.day)
    own = pl.col("validator_index").is_in(source.mine)
    stats = source.scan("validator_stats").filter(own, days).collect().rows(named=True)
    for row in stats:
        moves = (row["withdrawals_amount_gwei"] or 0) - (row["deposits_amount_gwei"] or 0)
        row["income"] = row["end_balance_gwei"] - row["start_balance_gwei"] + moves
        row["stake"] = row["start_effective_balance_gwei"]
        row["sync"] = row["participated_sync"] + row["missed_sync"]
        row["is_plain"] = not (row["sync"] or row["missed_attestations"] or row["proposed_blocks"])
    rates: dict[int, tuple[float, str]] = {}
    sync, made = {}, {}
    assert source.index is not None
    for day in source.index.rows(named=True):
        rewards, number = int(day["consensus_rewards_sum_wei"]), day["day"]
        plain = [r["income"] / r["stake"] for r in stats if r["is_plain"] and r["day"] == number]
        rates[number] = (
            54 / 64 * rewards / int(day["effective_balances_sum_wei"]),
            "mean of the network",
        )
        duties = source.day * source.slots * source.chain.sync_committee_size
        sync[number] = 2 / 64 * rewards / 10**9 / duties
        made[number] = []
        if plain:
            rates[number] = float(np.median(plain)), "median of the validators"
            for row in stats:
                if row["day"] == number and row["proposed_blocks"] and not row["sync"]:
                    share = 1 - row["missed_attestations"] * 94 / 54 / source.day
                    rest = row["income"] - rates[number][0] * row["stake"] * share
                    made[number].append(
                        (row["proposed_blocks"], round(rest / row["proposed_blocks"]))
                    )
    found: list[tuple[str, int, int | None, str | None]] = []
    for index in source.mine:
        rows = [row for row in stats if row["validator_index"] == index]
        votes = [row for row in rows if row["missed_attestations"]]
        if votes:
            each = (
                row["missed_attestations"]
                * row["stake"]
                * rates[row["day"]][0]
                * 94
                / 54
                / source.day
                for row in votes
            )
            basis = ", or ".join(sorted({rates[row["day"]][1] for row in votes}))
            found.append(("missed votes", index, sum(map(round, each)), basis))
        if any(row["missed_sync"] for row in rows):
            cost = sum(round(2 * row["missed_sync"] * sync[row["day"]]) for row in rows)
            found.append(("sync committee", index, cost, "mean of the network"))
    paid = [] if source.received is None else source.received.rows(named=True)
    for row in source.blocks.filter(pl.col("status") != "proposed").rows(named=True):
        near = [
            block
            for day, blocks in made.items()
            for block in blocks
            if abs(day - row["epoch"] // source.day) <= 1
        ]
        received = sorted(
            int(block["producer_reward_wei"])
            for block in paid
            if abs(block["epoch"] // source.day - row["epoch"] // source.day) <= 1
        )
        network = _average_blocks(source, row["epoch"])
        assert network is not None
        count = sum(number for number, _ in near)
        costs = sorted(cost for _, cost in near)
        text = f"median of {count} block{'s' * (count > 1)}" if near else "mean of the network"
        cost = costs[(len(costs) - 1) // 2] if near else network[0]
        execution = received[(len(received) - 1) // 2] if received else network[1]
        text += ", execution layer: "
        more = f"median of {len(received)} block{'s' * (len(received) > 1)}"
        text += more if received else "priority fees of the network"
        kind = f"{row['status']} proposal"
        found.append((kind, row["proposer_index"], cost + execution // 10**9, text))
    return sorted(found)


def query_upcoming(source: Source) -> pl.DataFrame:
    """Committees, proposals of the current epoch, activations, exits and full withdrawals."""
    chain = source.chain
    rows = []
    period = source.latest // source.period
    for number, kind in ((period, "in sync committee"), (period + 1, "sync committee")):
        seats = source.scan("sync_committees").filter(pl.col("period") == number).collect()
        for index in sorted(set(seats["validator_index"]) & set(source.mine)):
            first, last = number * source.period, (number + 1) * source.period - 1
            rows.append((kind, index, source.time(first), source.time(last + 1), None, first, last))
    for column, kind in (
        ("activation_epoch", "activation"),
        ("exit_epoch", "exit"),
        ("withdrawable_epoch", "full withdrawal"),
    ):
        found = source.validators.filter(pl.col(column) > source.latest)
        for index, epoch in found.select("validator_index", column).iter_rows():
            rows.append(
                (kind, index, source.time(epoch), source.time(epoch + 1), None, epoch, epoch)
            )
    waiting = source.validators.filter(
        pl.col("activation_epoch").is_null(), pl.col("activation_eligibility_epoch").is_not_null()
    )
    for index, eligible in waiting.select(
        "validator_index", "activation_eligibility_epoch"
    ).iter_rows():
        # Final at the end of the next epoch; then active after one epoch and MAX_SEED_LOOKAHEAD.
        epoch = max(eligible + 1, source.latest) + 1 + 4
        times = source.time(epoch), source.time(epoch + 1)
        rows.append(("earliest activation", index, *times, None, epoch, epoch))
    head = source.scan("latest_state").select("current_slot").collect().item()
    coming = pl.col("slot") > head, pl.col("slot") < (source.latest + 1) * source.slots
    # A set of V2 has up to 100 validators.
    own = pl.col("proposer_index").is_in(source.mine if len(source.mine) <= 100 else [])
    blocks = source.scan("blocks").filter(*coming, own).select("slot", "proposer_index").collect()
    for slot, index in blocks.iter_rows():
        start = source.genesis + timedelta(seconds=slot * chain.seconds_per_slot)
        end = start + timedelta(seconds=chain.seconds_per_slot)
        epoch = slot // source.slots
        rows.append(("proposal", index, start, end, slot, epoch, epoch))
    rows.sort(key=lambda row: (row[5], row[0], row[1]))
    names = ["kind", "validator_index", "since", "until", "slot", "first_epoch", "last_epoch"]
    return pl.DataFrame(rows, names, orient="row")
