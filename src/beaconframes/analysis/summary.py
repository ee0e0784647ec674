"""Validator performance: all measures of a validator or group in one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.apr import (
    STAKES,
    compute_rates,
    join_stakes,
    sum_layers,
    sum_validator_days,
)
from beaconframes.analysis.attestation_ceiling import (
    ATTESTED,
    CEILING,
    add_attestation_ceiling,
    add_attestation_income,
)
from beaconframes.analysis.attestations import attestation_effectiveness
from beaconframes.analysis.engines import (
    check_distinct,
    collect_sums,
    compute_once,
    list_columns,
    open_frame,
    open_frame_like,
    resolve_chain,
    return_table,
)
from beaconframes.analysis.execution_income import build_basis, open_income
from beaconframes.analysis.income import RESULT
from beaconframes.analysis.income import income as sum_income
from beaconframes.analysis.income_columns import AMOUNTS
from beaconframes.analysis.luck import proposal_luck
from beaconframes.analysis.proposal_costs import missed_proposals
from beaconframes.analysis.sync_duties import sync_against_committee
from beaconframes.errors import UsageError
from beaconframes.frames import as_lazy, collect, map_rows, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_VALIDATOR = "validator_index"
_ADDRESS = "withdrawal_address"
_KEYS = [_VALIDATOR, "epoch"]
_ACTIVE_PERIOD = [_VALIDATOR, "activation_epoch", "exit_epoch"]
_ATTESTED = ["epoch", "attester_slot", "inclusion_slot", "status"]
_INCOME = [
    "validator_epochs",
    "consensus_income_gwei",
    "execution_income_wei",
    "net_income_wei",
    "proposals_missed",
]
_RATES = ["apr_on_32_eth", "apr_on_effective", "apr_as_index", "index_apr", "difference_bp"]


@show_elapsed
def performance(
    validators: IntoFrame,
    income: IntoFrameT,
    balances: IntoFrame,
    *,
    attestations: IntoFrame | None = None,
    proposals: IntoFrame | None = None,
    blocks: IntoFrame | None = None,
    slots: IntoFrame | None = None,
    committees: IntoFrame | None = None,
    epochs: IntoFrame | None = None,
    index: IntoFrame | None = None,
    by: str | Sequence[str] = _VALIDATOR,
    until: int | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Summarize income, rates, attestations, proposals and luck. One row per validator or group.

    The columns depend on the frames passed. This computes eagerly: the engine of *income* adds up,
    and the rows of the groups are joined in polars.

    Parameters
    ----------
    validators
        Frame of `load_validators`, of the validators to report; you may join labels to it.
    income, balances
        Frames of `load_income_history` and `load_balance_history`. All validators in them are the
        peers of the comparison, so they may hold more validators than are reported.
    attestations, proposals, slots, committees, epochs, index
        Frames of `load_attestations`, `load_proposals`, `load_epoch_slots`, `load_sync_committees`,
        `load_epochs` and `load_yield_index`. Luck needs *proposals* and *epochs*, sync signatures
        need *committees* and *slots*. With *slots*, missing blocks are separated from faults.
    blocks
        Blocks of all validators of *income*, as in `analysis.income`: execution income is then what
        the proposers received. Without it: priority fees, relay payments not included.
    by
        A column of *validators*, or several: ``"validator_index"``, a label, or
        ``"withdrawal_address"``, which is read from the credentials (null for BLS credentials).
    until
        Last epoch whose attestations count; see `attestation_effectiveness`.
    chain
        Chain of the epochs. Default: that of *income* or *epochs*, from ``time``.

    Returns
    -------
    The same kind of frame as *income*, sorted by group
        ``validators`` is the number of validators in the group. Income as in `analysis.income`,
        rates over the whole range as in `analysis.apr`; ``peers_apr`` is ``apr_on_effective`` of
        all peers, and ``peers_difference_bp`` the difference to it. ``attestation_score`` is
        ``attestation_income_gwei`` over ``attestation_ceiling_gwei``, the income that the best
        decile of the peers with the same effective balance reached in the same epoch; the ideal
        income is unknown. Columns of attestations, proposals and signatures begin with
        ``attestations_``, ``proposals_`` and ``sync_``.
    """
    frames = _open_frames(validators, income, balances, list_columns(by))
    groups = frames.groups
    label_table = collect(frames.labels)
    check_distinct(label_table, [_VALIDATOR], groups, loader="load_validators")
    clock = resolve_chain(chain, (income, "epoch"), (epochs, "epoch"))
    parts = _summarize_income(frames, blocks, index, clock.epochs_per_day)
    if attestations is not None:
        check_distinct(attestations, _KEYS, loader="load_attestations")
        duties = open_frame_like(
            attestations, [_VALIDATOR, *_ATTESTED], loader="load_attestations", like=frames.income
        )
        effectiveness = attestation_effectiveness(
            frames.add_labels(duties), slots, by=groups, until=until
        )
        parts.append(_add_prefix(collect_sums(as_lazy(effectiveness)), groups, "attestations_"))
    if proposals is not None and epochs is not None:
        luck = proposal_luck(
            proposals,
            frames.add_labels(frames.balances),
            epochs,
            validators=frames.validators.select(*_ACTIVE_PERIOD).unique().to_native(),
            by=groups,
            chain=clock,
        )
        parts.append(
            _add_prefix(collect_sums(as_lazy(luck)).drop("slots", "missed"), groups, "proposals_")
        )
        missed = to_polars(missed_proposals(proposals, frames.income.to_native(), blocks=blocks))
        parts.append(_sum_costs(missed, label_table, groups))
    if committees is not None and slots is not None:
        members = to_polars(sync_against_committee(slots, committees))
        parts.append(_sum_signatures(members, label_table, groups))
    table = label_table.group_by(groups).agg(validators=pl.len().cast(pl.Int64))
    for part in parts:
        table = table.join(part, on=groups, how="left", nulls_equal=True)
    return return_table(table.sort(groups), frames.income, income)


@dataclass(frozen=True)
class _Frames:
    """The frames that every summary needs, and the columns of its groups."""

    validators: Lazy
    income: Lazy
    balances: Lazy
    groups: list[str]

    @property
    def labels(self) -> Lazy:
        """Return the group of each validator to report."""
        return self.validators.select(*dict.fromkeys([_VALIDATOR, *self.groups]))

    def add_labels(self, rows: Lazy) -> Any:
        """Return the *rows* of the validators to report, with their group."""
        return rows.join(self.labels, on=_VALIDATOR, how="inner").to_native()


def _open_frames(
    validators: IntoFrame, income: IntoFrame, balances: IntoFrame, groups: list[str]
) -> _Frames:
    """Return the frames with the columns that a summary by *groups* needs."""
    if not groups:
        raise UsageError("by is empty", hint='Use by="validator_index" or a label.')
    list_columns(groups, {*RESULT, "validators"})
    needed = [*_ACTIVE_PERIOD, *(name for name in groups if name != _ADDRESS)]
    if _ADDRESS in groups:
        needed.append("withdrawal_credentials")
    income_rows = open_frame(
        income,
        [_VALIDATOR, "epoch", "time", "proposals_missed", *AMOUNTS],
        loader="load_income_history",
    )
    balance_rows = open_frame_like(
        balances, STAKES, loader="load_balance_history", like=income_rows
    )
    for frame, loader in ((income, "load_income_history"), (balances, "load_balance_history")):
        check_distinct(frame, _KEYS, loader=loader)
    validator_rows = open_frame_like(validators, needed, loader="load_validators", like=income_rows)
    if _ADDRESS in groups:
        validator_rows = map_rows(validator_rows, _add_address)
    return _Frames(validator_rows, income_rows, balance_rows, groups)


def _summarize_income(
    frames: _Frames, blocks: IntoFrame | None, index: IntoFrame | None, epochs_per_day: int
) -> list[pl.DataFrame]:
    """Return income, rates beside those of the peers, and attestation scores, by group."""
    groups, income = frames.groups, frames.income.to_native()
    peer_income = open_income(income, [*_KEYS, "time", *AMOUNTS], blocks)
    peers = compute_once(_join_balances(peer_income, frames.balances))
    peer_days = compute_once(sum_validator_days(peers, [], epochs_per_day))
    with_periods = frames.validators.select(*dict.fromkeys([*_ACTIVE_PERIOD, *groups]))
    own_days = peer_days.join(with_periods, on=_VALIDATOR, how="inner")
    own_rates = compute_rates(own_days, groups, epochs_per_day, index, has_periods=True)
    peer_rates = compute_rates(peer_days, [], epochs_per_day, has_periods=False)
    earned = sum_income(income, blocks=blocks, every="all", by=_VALIDATOR)
    sums = aggregate(as_lazy(frames.add_labels(as_lazy(earned))), groups, _INCOME)
    with_basis = map_rows(
        sums, lambda part: part.with_columns(build_basis(blocks, "execution_income_wei"))
    )
    return [
        collect_sums(with_basis),
        _compare_with_peers(collect_sums(own_rates), collect_sums(peer_rates), groups),
        _score_attestations(add_attestation_ceiling(peers), frames.labels, groups),
    ]


def _join_balances(income_rows: Lazy, balance_rows: Lazy) -> Lazy:
    """Return the income of each validator and epoch by layer, with its effective balance."""

    def sum_row(part: Lazy) -> Lazy:
        return sum_layers(add_attestation_income(part), [*_KEYS, ATTESTED])

    return join_stakes(map_rows(income_rows, sum_row), balance_rows)


def _add_address(active_periods: Lazy) -> Lazy:
    """Add the withdrawal address of credentials that contain one."""
    credentials = nw.col("withdrawal_credentials")
    has_address = credentials.str.starts_with("0x01") | credentials.str.starts_with("0x02")
    address = nw.concat_str(nw.lit("0x"), credentials.str.slice(26, 40))
    return active_periods.with_columns(nw.when(has_address).then(address).alias(_ADDRESS))


def _compare_with_peers(
    rates: pl.DataFrame, peers: pl.DataFrame, groups: list[str]
) -> pl.DataFrame:
    own_rates = rates.select(*groups, *(name for name in _RATES if name in rates.columns))
    peers_rate = peers["apr_on_effective"].item() if peers.height else None
    return own_rates.with_columns(peers_apr=pl.lit(peers_rate, pl.Float64)).with_columns(
        peers_difference_bp=(pl.col("apr_on_effective") - pl.col("peers_apr")) * 1e4
    )


def _score_attestations(rows: Lazy, labels: Lazy, groups: list[str]) -> pl.DataFrame:
    names = [ATTESTED, CEILING]
    sums = collect_sums(aggregate(rows.join(labels, on=_VALIDATOR, how="inner"), groups, names))
    possible = pl.when(pl.col(CEILING) > 0).then(pl.col(CEILING))
    return sums.with_columns(attestation_score=pl.col(names[0]) / possible)


def _add_prefix(part: pl.DataFrame, groups: list[str], prefix: str) -> pl.DataFrame:
    return part.rename({name: prefix + name for name in part.columns if name not in groups})


def _sum_costs(missed: pl.DataFrame, labels: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return the cost of missed proposals of each group, in wei of both layers; 0 for none.

    Null where one of the costs is unknown.
    """
    wei = (
        pl.col("cost_consensus_gwei").cast(pl.Decimal(38, 0)) * pl.lit(10**9, pl.Decimal(38, 0))
        + pl.col("cost_execution_wei")
    ).cast(pl.Decimal(28, 0))
    each = missed.select(
        wei.alias("proposals_lost_wei"),
        pl.col("proposer_index").alias(_VALIDATOR),
        unknown=wei.is_null(),
    )
    total = pl.col("proposals_lost_wei").sum().cast(pl.Decimal(28, 0))
    rows = labels.join(each, on=_VALIDATOR, how="left")
    return rows.group_by(groups).agg(
        pl.when(~pl.col("unknown").any()).then(total).alias("proposals_lost_wei")
    )


def _sum_signatures(members: pl.DataFrame, labels: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return the duties in sync committees, and the mean rate of the committees over them."""
    whole = pl.col("committee_rate") * pl.col("duties")
    nonzero_duties = pl.when(pl.col("sync_duties") > 0).then(pl.col("sync_duties"))
    return (
        labels.join(members, on=_VALIDATOR, how="left")
        .group_by(groups)
        .agg(sync_duties=pl.sum("duties"), sync_signed=pl.sum("signed"), whole=whole.sum())
        .select(
            *groups,
            "sync_duties",
            "sync_signed",
            sync_rate=pl.col("sync_signed") / nonzero_duties,
            sync_committee_rate=pl.col("whole") / nonzero_duties,
        )
    )
