"""Problems of a report, with what each cost and its cause."""

from __future__ import annotations

import bisect
import functools
import math
from collections import Counter
from datetime import timedelta

import polars as pl

from .attestations import count_votes
from .proposals import query_proposals
from .source import HAS_VOTE, HEAD, KEYS, NO_SOURCE, NO_TARGET, SOURCE, TARGET, Source
from .sync_committees import query_sync

ADVICE = ("BLS credentials", "consolidation possible", "not compounding")
"""Kinds of problems that cost nothing."""


@functools.cache
def query_problems(source: Source) -> pl.DataFrame:
    """What was lost and what needs attention, most costly first."""
    late, missed = _find_losses(source)
    rows = _list_missed(missed) + _list_late(source, late) + _list_sync(source)
    rows += _list_proposals(source) + _list_states(source)
    for row in rows:
        first, last = row.get("first_epoch"), row.get("last_epoch")
        index = row.get("validator_index")
        if first is not None and "since" not in row:
            row["since"] = source.time(first)
            row["until"] = source.time(last + 1) - timedelta(microseconds=1)
        if "rows" not in row:
            span = f"epoch == {first}" if first == last else f"epoch from {first} to {last}"
            about = [f"validator_index == {index}", *([span] if first is not None else [])]
            row["rows"] = ", ".join(about)
        row["validators"] = row.get("validators", 1)
        row["count_unit"] = None if row.get("count") is None else _find_unit(row["kind"])
        row["detail"] = row.get("detail", "")
    rows.sort(
        key=lambda row: (
            row["cost_gwei"] is None,
            -(row["cost_gwei"] or 0),
            row["kind"],
            row.get("validator_index") is None,
            row.get("validator_index") or 0,
            row.get("first_epoch") or 0,
        )
    )
    names = ["kind", "validator_index", "validators", "since", "until", "first_epoch"]
    names += ["last_epoch", "count", "count_unit", "cost_gwei", "cost_basis"]
    names += ["avoidable", "table", "rows", "detail"]
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)


def _find_unit(kind: str) -> str:
    """What the count of a problem counts."""
    if kind in ("offline", "missed votes", "late votes"):
        return "votes"
    return {"sync committee": "duties", "slashed": "penalties"}.get(
        kind, "slots" if kind.endswith("proposal") else "validators"
    )


def _find_losses(source: Source) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return late or wrong votes, and missed ones, with what they lost.

    A full vote has the best reward of the same epoch and effective balance.
    """
    exits = source.validators.select("validator_index", "exit_epoch")
    stake = "effective_balance_gwei"
    rows = source.staked.join(exits, on="validator_index")
    rows = rows.filter(pl.col("exit_epoch").is_null() | (pl.col("epoch") < pl.col("exit_epoch")))
    votes = {"head": HEAD, "source": SOURCE, "target": TARGET}
    best = rows.filter(pl.col(stake) > 0).group_by("epoch", stake)
    best = best.agg(**{name: reward.max() for name, reward in votes.items()}).sort("epoch")
    full = []
    for name in votes:
        rates: dict[int, float] = {}
        for epoch, increment, reward in best.select("epoch", stake, name).iter_rows():
            if reward > 0:
                rates[epoch] = max(rates.get(epoch, 0.0), reward / increment)
        full.append([])
        for epoch, increment, reward in best.select("epoch", stake, name).iter_rows():
            # Where no vote was rewarded, the rate of the nearest epoch before, or after.
            near = max((e for e in rates if e <= epoch), default=min(rates, default=None))
            rate = 0.0 if near is None else rates[near]
            full[-1].append(reward if reward > 0 else int(rate * increment))
    best = best.select(
        "epoch", stake, full=pl.Series([sum(parts) for parts in zip(*full, strict=True)])
    )
    lost = pl.col("full") - HEAD - SOURCE - TARGET + NO_SOURCE + NO_TARGET
    is_full = (HEAD > 0) & (NO_SOURCE == 0) & (NO_TARGET == 0)
    found = (
        rows.filter(HAS_VOTE & ~is_full)
        .join(best, on=["epoch", stake])
        .with_columns(
            lost=lost,
            missed=(NO_SOURCE > 0) & (NO_TARGET > 0),
            fault=pl.when((NO_SOURCE > 0) & (NO_TARGET > 0))
            .then(pl.lit("missed"))
            .when(NO_SOURCE > 0)
            .then(pl.lit("late"))
            .when(NO_TARGET > 0)
            .then(pl.lit("target"))
            .otherwise(pl.lit("head")),
        )
        .filter(pl.col("lost") > 0)
        .sort(KEYS)
    )
    causes = _find_causes(source)
    texts = [
        causes.get((index, epoch), {}).get(fault, _REWARD_CAUSES.get(fault))
        for index, epoch, fault in found.select(*KEYS, "fault").iter_rows()
    ]
    found = found.with_columns(cause=pl.Series(texts, dtype=pl.String))
    return found.filter(~pl.col("missed")), found.filter("missed")


_REWARD_CAUSES = {
    "head": "wrong or late head",
    "target": "wrong target",
    "late": "source too late",
}
"""What rewards alone show of a vote."""


def _find_causes(source: Source) -> dict[tuple[int, int], dict[str, str]]:
    """Return what duties and blocks of the last 98 epochs show, by validator, epoch and fault."""
    since = max(source.first, source.latest - 97)
    span = pl.col("epoch").is_between(since, source.last)
    own = pl.col("validator_index").is_in(source.mine)
    duties = source.scan("attestations").filter(own, span, pl.col("status") != "pending").collect()
    slots = source.scan("blocks").filter(span).select("slot", "status").collect()
    proposed = sorted(slots.filter(pl.col("status") == "proposed")["slot"])
    end = max(slots["slot"], default=-1)
    found = {}
    columns = [*KEYS, "attester_slot", "inclusion_slot", "status"]
    for index, epoch, slot, included, status in duties.select(columns).iter_rows():
        # A slot that comes after all known ones has no known block.
        place = bisect.bisect_right(proposed, slot)
        first = proposed[place] if place < len(proposed) else None
        is_known = since * source.slots <= slot + 1 <= end
        text = None
        if status != "included":
            last = (epoch + 2) * source.slots
            if is_known and first is not None and first < last:
                text = "missed although blocks were proposed"
            elif is_known and end >= last - 1:
                text = "missed without a block to include it"
        elif included > slot + 1:
            missing = is_known and (first is None or first >= included) and end >= included - 1
            text = "included late after a missing block" if missing else "included late"
        else:
            found[index, epoch] = {"head": "wrong head", "target": "wrong target"}
        if text is not None:
            found[index, epoch] = dict.fromkeys(("missed", "late", "target", "head"), text)
    return found


def _count_causes(causes: list[str | None]) -> str:
    """Return the causes with their numbers, the most frequent first."""
    counts = Counter(cause for cause in causes if cause is not None)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {cause}" for cause, count in rows)


def _list_missed(missed: pl.DataFrame) -> list[dict]:
    """List three or more consecutive epochs as a time offline, all others together."""
    rows = []
    for (index,), part in missed.group_by("validator_index"):
        runs: list[list[tuple[int, int, str | None]]] = []
        for vote in part.sort("epoch").select("epoch", "lost", "cause").iter_rows():
            if not runs or runs[-1][-1][0] + 1 != vote[0]:
                runs.append([])
            runs[-1].append(vote)
        singles = [vote for run in runs if len(run) < 3 for vote in run]
        found = [("offline", run) for run in runs if len(run) >= 3]
        found += [("missed votes", singles)] if singles else []
        for kind, votes in found:
            rows.append(
                {
                    "kind": kind,
                    "validator_index": index,
                    "first_epoch": votes[0][0],
                    "last_epoch": votes[-1][0],
                    "count": len(votes),
                    "cost_gwei": sum(lost for _, lost, _ in votes),
                    "cost_basis": "best reward of the epoch",
                    "avoidable": True,
                    "table": "income_history",
                    "detail": _count_causes([cause for *_, cause in votes]),
                }
            )
    return rows


def _list_late(source: Source, late: pl.DataFrame) -> list[dict]:
    """List late votes; more than usual, by three standard errors, could have been avoided."""
    counts = count_votes(source.income, ["validator_index"])
    usual = 1 - source.network["head"] / source.network["included"]
    shares = {}
    for row in counts.iter_rows(named=True):
        if included := row["votes"] - row["missed"]:
            shares[row["validator_index"]] = 1 - row["head"] / included, included
    rows = []
    for (index,), votes in late.group_by("validator_index"):
        share, included = shares[index]
        error = math.sqrt(usual * (1 - usual) / included)
        rows.append(
            {
                "kind": "late votes",
                "validator_index": index,
                "first_epoch": votes["epoch"].min(),
                "last_epoch": votes["epoch"].max(),
                "count": votes.height,
                "cost_gwei": votes["lost"].sum(),
                "cost_basis": "best reward of the epoch",
                "avoidable": share > usual + 3 * error,
                "table": "income_history",
                "detail": f"{_count_causes(votes['cause'].to_list())}; "
                f"{_round(share)} % of votes late (typical: {_round(usual)} %)",
            }
        )
    return rows


def _round(share: float) -> float:
    """Return percent with one decimal."""
    return round(100 * share, 1)


def _list_sync(source: Source) -> list[dict]:
    usual = None
    if source.network["seats"]:
        # No duty can be signed in a slot without a block.
        usual = source.network["signed"] / source.network["seats"]
        usual *= source.network["slots"] / source.network["made"]
    rows = []
    for row in query_sync(source).filter(pl.col("lost_gwei") > 0).iter_rows(named=True):
        slots = (row["last_epoch"] - row["first_epoch"] + 1) * source.slots
        detail = f"signed {_round(row['signed_rate'])} % in period {row['period']}"
        avoidable = None
        if usual is not None:
            avoidable = row["signed_rate"] < usual - 3 * math.sqrt(usual * (1 - usual) / slots)
            detail += f" (typical: {_round(usual)} %)"
        rows.append(
            {
                "kind": "sync committee",
                **{n: row[n] for n in ("validator_index", "first_epoch", "last_epoch")},
                "cost_gwei": row["lost_gwei"],
                "cost_basis": "penalty, and a reward of the same amount",
                "avoidable": avoidable,
                "table": "income_history",
                "detail": detail,
            }
        )
    return rows


def _list_proposals(source: Source) -> list[dict]:
    rows = []
    for row in query_proposals(source).iter_rows(named=True):
        if row["status"] not in ("missed", "orphaned"):
            continue
        cost, execution = row["cost_consensus_gwei"], row["cost_execution_wei"]
        rows.append(
            {
                "kind": f"{row['status']} proposal",
                "validator_index": row["proposer_index"],
                "since": row["time"],
                "until": row["time"],
                "first_epoch": row["epoch"],
                "last_epoch": row["epoch"],
                "count": 1,
                "cost_gwei": None if cost is None else cost + int(execution or 0) // 10**9,
                "cost_basis": None if cost is None else row["cost_basis"],
                "avoidable": True if row["status"] == "missed" else None,
                "table": "proposals",
                "rows": f"slot == {row['slot']}",
            }
        )
    return rows


def _list_states(source: Source) -> list[dict]:
    """List slashings, exits to come, low balances, and credentials that could be better."""
    rows = []
    state = {"cost_gwei": 0, "table": "validators"}
    kinds: dict[str, list[int]] = {"BLS credentials": [], "not compounding": []}
    for row in source.validators.iter_rows(named=True):
        index, exits = row["validator_index"], row["exit_epoch"]
        has_exited = exits is not None and exits <= source.last
        is_active = row["status"] not in ("pending", "deposited", "exited") and not has_exited
        subject = {"validator_index": index}
        if row["slashed"]:
            votes = pl.sum_horizontal(
                f"{name}_penalty_gwei"
                for name in ("attestation_source", "attestation_target", "finality_delay")
            )
            after = pl.when(pl.col("epoch") >= exits).then(votes).otherwise(0)
            penalty = pl.col("slashing_penalty_gwei") + after
            own = source.income.filter(pl.col("validator_index") == index)
            paid = own.with_columns(penalty=penalty).filter(pl.col("penalty") > 0)
            has = paid.height > 0
            rows.append(
                subject
                | {
                    "kind": "slashed",
                    "first_epoch": paid["epoch"].min(),
                    "last_epoch": paid["epoch"].max(),
                    "count": paid.height if has else None,
                    "cost_gwei": paid["penalty"].sum(),
                    "cost_basis": "penalty" if has else None,
                    "avoidable": True,
                    "table": "income_history",
                    "detail": f"withdrawable from epoch {row['withdrawable_epoch']}",
                }
            )
        elif exits is not None and not has_exited:
            rows.append(
                subject
                | state
                | {
                    "kind": "exiting",
                    "first_epoch": exits,
                    "last_epoch": exits,
                    "rows": f"validator_index == {index}",
                    "detail": f"exits in epoch {exits}",
                }
            )
        if is_active and row["effective_balance_gwei"] < 31 * 10**9:
            ether = row["effective_balance_gwei"] // 10**9
            rows.append(
                subject | state | {"kind": "low balance", "detail": f"{ether} ETH effective"}
            )
        prefix = row["withdrawal_credentials"][:4]
        if prefix == "0x00" and row["status"] != "exited":
            kinds["BLS credentials"].append(index)
        if prefix == "0x01" and is_active:
            kinds["not compounding"].append(index)
    texts = {
        "BLS credentials": ("0x00", "no withdrawals until they are changed to an address"),
        "not compounding": ("0x01", "rewards can compound after a change to 0x02"),
    }
    for kind, members in kinds.items():
        prefix, detail = texts[kind]
        if members:
            rows.append(
                {
                    "kind": kind,
                    "validator_index": members[0] if len(members) == 1 else None,
                    "validators": len(members),
                    "count": len(members),
                    "cost_gwei": None,
                    "table": "validators",
                    "rows": f'withdrawal_credentials starts with "{prefix}"',
                    "detail": detail,
                }
            )
    return rows + _list_consolidations(source)


def _list_consolidations(source: Source) -> list[dict]:
    """List addresses whose validators fit into fewer, of up to 2048 ETH each."""
    old = source.last - 256
    stakes: dict[str, list[int]] = {}
    for row in source.validators.iter_rows(named=True):
        address = row["withdrawal_credentials"][-40:]
        is_active = row["status"] not in ("pending", "deposited", "exited")
        is_old = row["activation_epoch"] is not None and row["activation_epoch"] <= old
        has_address = row["withdrawal_credentials"][:4] in ("0x01", "0x02")
        if has_address and is_active and is_old and row["exit_epoch"] is None:
            stakes.setdefault(address, []).append(row["effective_balance_gwei"])
    rows = []
    for address, own in sorted(stakes.items()):
        targets = math.ceil(sum(own) / (2048 * 10**9))
        if targets < len(own):
            text = f"{len(own)} validators with {sum(own) // 10**9:,} ETH fit into {targets}"
            rows.append(
                {
                    "kind": "consolidation possible",
                    "validators": len(own),
                    "count": len(own),
                    "cost_gwei": None,
                    "table": "validators",
                    "rows": f'withdrawal_credentials ends with "{address}", '
                    f"activation_epoch <= {old}",
                    "detail": f"{text}, withdrawal address 0x{address}",
                }
            )
    return rows


def sum_known_costs() -> pl.Expr:
    cost = pl.col("cost_gwei")
    return pl.when(cost.is_not_null().any()).then(cost.sum())
