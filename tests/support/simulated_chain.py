"""A simulated chain with all its tables in memory, and assertions about its rows."""

from __future__ import annotations

import functools
import math
import re

import polars as pl

from .first_blocks import compute_balances_before
from .income_columns import PENALTIES, REWARDS

ETH = 10**9
WEI = 10**18
KEY = ["validator_index", "epoch"]
DAILY = ["validator_index", "day"]
FAR = 2**62
PAINT = (
    re.compile(rb"graffitiwall:([0-9]{1,3}):([0-9]{1,3}):#([0-9a-fA-F]{6})"),
    re.compile(rb"gw:([0-9]{3})([0-9]{3})([0-9a-fA-F]{6})"),
)


class SimulatedChain:
    """The tables of a simulated chain, by name: `simulated.blocks`, `simulated.epochs`.

    Derived frames repeat the formulas of the consensus specification, so that the tests do not
    repeat a mistake of the simulator.
    """

    def __init__(self, dataset):
        self.dataset, self.meta = dataset, dataset.meta
        for table in dataset.tables():
            setattr(self, table, dataset.scan(table).collect())
        self.__dict__.update({k: self.meta[f"{k}_epoch"] for k in ("first", "latest", "finalized")})
        self.days = range(self.first // 225, self.finalized // 225)
        self.vector = self.meta["preset"]["epochs_per_slashings_vector"]
        # Canonical blocks have a proposer, except that of genesis.
        self.canonical = self.blocks.filter(pl.col("status") == "proposed")
        self.produced = self.canonical.filter(pl.col("proposer_index").is_not_null())

    @functools.cached_property
    def validator_epochs(self):
        """The epochs of the life of each validator, one row per validator."""
        slashed = self.slashing_events.select("validator_index", since=pl.col("slot") // 32)
        switched = self.switch_events.select("validator_index", switch=pl.col("slot") // 32)
        return (
            self.validators.select(
                "validator_index",
                "slashed",
                kind=pl.col("withdrawal_credentials").str.slice(0, 4),
                activation=pl.col("activation_epoch").fill_null(FAR),
                exit=pl.col("exit_epoch").fill_null(FAR),
                withdrawable=pl.col("withdrawable_epoch").fill_null(FAR),
            )
            .join(slashed, "validator_index", how="left")
            .join(switched, "validator_index", how="left")
        )

    @functools.cached_property
    def states(self):
        """The base reward and the stake, one row per validator and epoch."""
        active = (pl.col("activation") <= pl.col("epoch")) & (pl.col("epoch") < pl.col("exit"))
        # A validator that switches has its new maximum at the end of the epoch.
        is_compounding = (pl.col("kind") == "0x02") & (
            pl.col("epoch") > pl.col("switch").fill_null(-1)
        )
        states = (
            self.balance_history.drop("time")
            .join(self.validator_epochs, "validator_index", maintain_order="left")
            .with_columns(
                max_effective=pl.when(is_compounding).then(2048 * ETH).otherwise(32 * ETH),
                active=active,
                increments=pl.col("effective_balance_gwei") // ETH,
            )
            .with_columns(
                total=pl.col("effective_balance_gwei").filter("active").sum().over("epoch")
            )
        )
        roots = {total: math.isqrt(total) for total in states["total"].unique()}
        factor = ETH * self.meta["preset"]["base_reward_factor"]
        return states.with_columns(
            per_increment=factor // pl.col("total").replace_strict(roots)
        ).with_columns(base=pl.col("increments") * pl.col("per_increment"))

    @functools.cached_property
    def rows(self):
        """The states of final epochs with their income, one row per validator and epoch."""
        return self.states.join(self.income_history, KEY)

    @functools.cached_property
    def net(self):
        """The net income in gwei, one row per validator and final epoch."""
        gwei = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
        return self.income_history.select(*KEY, gwei=gwei)

    @functools.cached_property
    def before(self):
        """The balance before the first block, one row per validator and epoch."""
        return compute_balances_before(self, self.net)

    @functools.cached_property
    def final_attestations(self):
        """The duties of final epochs."""
        return self.attestations.filter(pl.col("epoch") <= self.finalized)

    def find_address(self, validator):
        """Return the address of a validator's withdrawal credentials."""
        return "0x" + self.validators["withdrawal_credentials"][validator][-40:]


def assert_empty(frame):
    """Assert that no row breaks a rule; a failing test shows the rows that do."""
    assert [] == frame.head(3).to_dicts()


def assert_same_rows(one, other):
    """Assert that two frames have the same rows, in any order and with any integer types."""
    assert sorted(one.rows()) == sorted(other.rows())


def count_rows(rows, *key):
    """Count rows by key."""
    return rows.group_by(key).agg(count=pl.len().cast(pl.Int64))


def select_income_keys(simulated):
    """Return the keys that income must have, in order: active validators, and slashed ones.

    Slashed validators have income until they are withdrawable.
    """
    slashed = (pl.col("since") <= pl.col("epoch")) & (pl.col("epoch") + 1 < pl.col("withdrawable"))
    has_income = pl.col("active") | slashed.fill_null(value=False)
    rows = simulated.states.filter(has_income & (pl.col("epoch") <= simulated.finalized))
    return rows.select(KEY).sort("epoch", "validator_index")


def decode_pixels(blocks):
    """Decode the graffiti of blocks, one pixel per slot."""
    rows = []
    for slot, proposer, graffiti in blocks.select("slot", "proposer_index", "graffiti").rows():
        data = bytes.fromhex(graffiti[2:]) if graffiti else b""
        match = next((m for pattern in PAINT if (m := pattern.search(data))), None)
        if match:
            x, y, color = match.groups()
            rows.append((slot, int(x), int(y), color.decode(), proposer))
    return rows
