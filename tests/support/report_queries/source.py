"""The rows of a dataset that a report is about, and the columns that queries share."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset

ROOT = Path(__file__).resolve().parents[3]
KEYS = ["validator_index", "epoch"]
SUMS = {
    "attestation_reward_gwei": [
        "attestation_head_reward_gwei",
        "attestation_source_reward_gwei",
        "attestation_target_reward_gwei",
    ],
    "proposal_reward_gwei": [
        "proposer_attestation_inclusion_reward_gwei",
        "proposer_slashing_inclusion_reward_gwei",
        "proposer_sync_inclusion_reward_gwei",
    ],
    "sync_committee_reward_gwei": ["sync_committee_reward_gwei"],
    "slashing_reward_gwei": ["slashing_reward_gwei"],
    "attestation_penalty_gwei": [
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
    ],
    "finality_delay_penalty_gwei": ["finality_delay_penalty_gwei"],
    "sync_committee_penalty_gwei": ["sync_committee_penalty_gwei"],
    "slashing_penalty_gwei": ["slashing_penalty_gwei"],
}
KINDS = [pl.sum_horizontal(columns).alias(name) for name, columns in SUMS.items()]
NET = pl.sum_horizontal(list(SUMS)[:4]) - pl.sum_horizontal(list(SUMS)[4:])
HEAD, SOURCE, TARGET = (
    pl.col(f"attestation_{vote}_reward_gwei") for vote in ("head", "source", "target")
)
NO_SOURCE, NO_TARGET = (pl.col(f"attestation_{vote}_penalty_gwei") for vote in ("source", "target"))
HAS_VOTE = (HEAD + SOURCE + TARGET + NO_SOURCE + NO_TARGET) > 0
IS_MISSED = (NO_SOURCE > 0) & (NO_TARGET > 0) & (HEAD == 0)
WEIGHTS = {"source": 14, "target": 26, "head": 14}
LEVEL = 0.95


@dataclass(eq=False)
class Source:
    """A dataset, and what a report of it is about."""

    dataset: Dataset
    mine: list[int]
    first: int
    last: int
    latest: int
    """The latest epoch, that of the latest slot."""
    final: int
    """The latest finalized epoch."""
    chain: Chain
    offset: int = 0
    """Epochs from a vote to its reward in the balance: simulated chains have 0, real ones 1."""
    groups: dict[str, list[int]] = field(default_factory=dict)
    prices: pl.DataFrame | None = None
    address: str = ""
    """The host of the explorer, or the path of the dataset as it was given."""
    requests: int = 0
    sent: list[str] | None = None
    """The paths of the requests, where they were sent over HTTP."""

    def __post_init__(self) -> None:
        chain = self.chain
        self.slots = chain.slots_per_epoch
        self.seconds = chain.seconds_per_slot * self.slots
        self.day = 86_400 // self.seconds
        self.period = chain.epochs_per_sync_period
        self.genesis = chain.genesis

    def time(self, epoch: int) -> datetime:
        """Return when an epoch begins."""
        return self.genesis + timedelta(seconds=epoch * self.seconds)

    def has(self, name: str) -> bool:
        """Return whether the dataset has rows of a table."""
        return name in self.dataset.tables() and not self.scan(name).head(1).collect().is_empty()

    def scan(self, name: str) -> pl.LazyFrame:
        """Return the rows of a table."""
        return self.dataset.scan(name)

    @functools.cached_property
    def validators(self) -> pl.DataFrame:
        """Return the validators of the report."""
        own = pl.col("validator_index").is_in(self.mine)
        return self.scan("validators").filter(own).sort("validator_index").collect()

    @functools.cached_property
    def received(self) -> pl.DataFrame | None:
        """Return the execution blocks of the validators in these epochs."""
        if not self.has("execution_blocks"):
            return None
        own = pl.col("proposer_index").is_in(self.mine), self.in_range
        return self.scan("execution_blocks").filter(*own).collect()

    @property
    def in_range(self) -> pl.Expr:
        """Return whether an epoch is one of the report."""
        return pl.col("epoch").is_between(self.first, self.last)

    @functools.cached_property
    def income(self) -> pl.DataFrame:
        """Return the income rows with ``el``, what proposers received in wei, and ``cl``."""
        own = pl.col("validator_index").is_in(self.mine), self.in_range
        rows = self.scan("income_history").filter(*own).collect()
        rows = rows.with_columns(fees=pl.col("tx_fee_reward_wei").cast(pl.Int128))
        if self.received is None:
            rows = rows.with_columns(el=pl.col("fees"))
        else:
            paid = self.received.group_by(validator_index="proposer_index", epoch="epoch").agg(
                el=pl.col("producer_reward_wei").cast(pl.Int128).sum()
            )
            rows = rows.join(paid, on=KEYS, how="left").with_columns(pl.col("el").fill_null(0))
        rows = rows.with_columns(date=pl.col("time").dt.date())
        return rows.with_columns(cl=rows.select(*KINDS).select(NET).to_series())

    @functools.cached_property
    def balances(self) -> pl.DataFrame:
        """Return the balances of these epochs and of the one after."""
        epochs = pl.col("epoch").is_between(self.first, min(self.last + 1, self.latest))
        own = pl.col("validator_index").is_in(self.mine)
        rows = self.scan("balance_history").filter(own, epochs).collect()
        return rows.with_columns(date=pl.col("time").dt.date())

    @functools.cached_property
    def staked(self) -> pl.DataFrame:
        """Return the income rows with their effective balance."""
        stakes = self.balances.select(*KEYS, "effective_balance_gwei")
        return self.income.join(stakes, on=KEYS)

    @functools.cached_property
    def withdrawals(self) -> pl.DataFrame:
        """Return the withdrawals of these epochs."""
        own = pl.col("validator_index").is_in(self.mine), self.in_range
        rows = self.scan("validator_withdrawals").filter(*own).collect()
        return rows.with_columns(date=pl.col("time").dt.date())

    @functools.cached_property
    def all_blocks(self) -> pl.DataFrame:
        """Return the blocks of the validators in these epochs, also two for one slot."""
        own = pl.col("proposer_index").is_in(self.mine), self.in_range
        return self.scan("blocks").filter(*own).sort("slot").collect()

    @functools.cached_property
    def blocks(self) -> pl.DataFrame:
        """Return the slots in which one of the validators had to propose, each once.

        Of two blocks for one slot, the canonical one counts.
        """
        rows = self.all_blocks.sort("slot", pl.col("status") != "proposed")
        return rows.unique("slot", keep="first", maintain_order=True)

    @functools.cached_property
    def index(self) -> pl.DataFrame | None:
        """Return the yield index of the days of the report that have ended."""
        last = min(self.last // self.day, (self.latest + 1) // self.day - 1)
        if not self.has("yield_index"):
            return None
        days = pl.col("day").is_between(min(self.first // self.day, last), last)
        return self.scan("yield_index").filter(days).collect()

    @functools.cached_property
    def group_of(self) -> pl.DataFrame:
        """Return the group of each validator."""
        rows = [(index, name) for name, members in self.groups.items() for index in members]
        return pl.DataFrame(rows, {"validator_index": pl.Int64, "group": pl.String}, orient="row")

    @functools.cached_property
    def network(self) -> dict[str, int]:
        """Return the votes of all validators in the window of V2 that is nearest to the report."""
        length = (self.last - self.first + 1) / self.day
        self.window = min((1, 7, 30, 90), key=lambda days: abs(days - length))
        first = max(0, self.final - self.window * self.day + 1)
        active = self.scan("validators").select(
            "validator_index", "activation_epoch", pl.col("exit_epoch").fill_null(2**62)
        )
        rows = (
            self.scan("income_history")
            .filter(pl.col("epoch").is_between(first, self.final))
            .join(active, on="validator_index")
            .with_columns(period=pl.col("epoch") // self.period)
        )
        duty = pl.col("epoch").is_between("activation_epoch", pl.col("exit_epoch") - 1)
        if "missed_attestation_events" in self.dataset.tables():
            missed = self.scan("missed_attestation_events")
        else:
            missed = self.scan("attestations").filter(pl.col("status") == "missed")
        missed = missed.select(*KEYS, missed=pl.lit(value=True))
        votes = rows.join(missed, on=KEYS, how="left").select(
            assigned=duty.sum(),
            included=(duty & pl.col("missed").is_null()).sum(),
            source=(SOURCE > 0).sum(),
            target=(TARGET > 0).sum(),
            head=(HEAD > 0).sum(),
        )
        # The block of genesis has no sync aggregate.
        signs = (pl.col("status") == "proposed") & pl.col("sync_aggregate_bits").is_not_null()
        blocks = self.scan("blocks").filter(signs).group_by("epoch").agg(blocks=pl.len())
        seats = self.scan("sync_committees").select("validator_index", "period").unique()
        reward, penalty = (pl.col(f"sync_committee_{kind}_gwei") for kind in ("reward", "penalty"))
        signed = (reward * pl.col("blocks") / (reward + penalty)).round().fill_nan(0)
        sync = (
            rows.join(seats, on=["validator_index", "period"])
            .join(blocks, on="epoch", how="left")
            .select(seats=pl.len() * self.slots, signed=signed.sum())
        )
        slots = (
            self.scan("blocks")
            .filter(pl.col("status").is_in(["proposed", "missed", "orphaned"]))
            .group_by("slot", "epoch", validator_index="proposer_index")
            .agg(made=(pl.col("status") == "proposed").any())
            .join(rows, on=KEYS, how="semi")
            .select(slots=pl.len(), made=pl.col("made").sum())
        )
        found = votes.collect().row(0, named=True) | sync.collect().row(0, named=True)
        found |= slots.collect().row(0, named=True)
        return found | {"first_epoch": first, "last_epoch": self.final}
