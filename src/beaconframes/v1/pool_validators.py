"""Validators of the liquid-staking pool."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Identifiers, Shape
from beaconframes.schema import Count, Flag, Fraction, Hex, Table, Text, Units, UnixTime, Wei


class PoolValidators(Table):
    """Validators of the pool protocol, its minipools. One row per validator."""

    validator_index = Count(
        "Validator.", key=True, wire=("index", "validatorindex", "validator_index")
    )
    minipool_address = Hex("Contract of the minipool.")
    minipool_status = Text("Initialized, Prelaunch, Staking, Withdrawable or Dissolved.")
    minipool_status_time = UnixTime("Time of that status, UTC.", nullable=True)
    minipool_deposit_type = Text("None, Full, Half, Empty or Variable.", nullable=True)
    minipool_node_fee = Fraction("Share of rewards that the node operator keeps.")
    version = Count("Version of the minipool's contract.", optional=True)
    is_vacant = Flag("Whether it waits for a validator from outside the pool.", optional=True)
    penalty_count = Count("Penalties of the minipool.", nullable=True)
    node_deposit_balance_wei = Wei(
        "Ether of the node operator.", wire="node_deposit_balance", optional=True
    )
    user_deposit_balance_wei = Wei(
        "Ether of the pool users.", wire="user_deposit_balance", optional=True
    )
    node_refund_balance_wei = Wei(
        "Ether owed to the operator.", wire="node_refund_balance", optional=True
    )
    node_deposit_credit_wei = Wei(
        "Ether credited to the node.", wire="node_deposit_credit", optional=True
    )
    node_address = Hex("Address of the node.", nullable=True)
    node_timezone_location = Text(
        "Time zone that the operator states: do not trust it.", nullable=True
    )
    node_rpl_stake_base_units = Units(
        "RPL staked, in 10**-18 RPL.", wire="node_rpl_stake", nullable=True
    )
    node_min_rpl_stake_base_units = Units(
        "Smallest allowed stake, in 10**-18 RPL.", wire="node_min_rpl_stake", nullable=True
    )
    node_max_rpl_stake_base_units = Units(
        "Largest stake that earns rewards, in 10**-18 RPL.",
        wire="node_max_rpl_stake",
        nullable=True,
    )
    effective_rpl_stake_base_units = Units(
        "Effective RPL stake, in 10**-18 RPL.", wire="effective_rpl_stake", optional=True
    )
    rpl_cumulative_rewards_base_units = Units(
        "RPL earned so far, in 10**-18 RPL.", wire="rpl_cumulative_rewards", nullable=True
    )
    unclaimed_rpl_rewards_base_units = Units(
        "Unclaimed RPL rewards, in 10**-18 RPL.", wire="unclaimed_rpl_rewards", nullable=True
    )
    smoothing_pool_opted_in = Flag(
        "Whether the node shares fees in the smoothing pool.", nullable=True
    )
    claimed_smoothing_pool_wei = Wei(
        "Ether claimed from the smoothing pool.", wire="claimed_smoothing_pool", nullable=True
    )
    unclaimed_smoothing_pool_wei = Wei(
        "Unclaimed ether in the smoothing pool.", wire="unclaimed_smoothing_pool", nullable=True
    )


POOL_VALIDATORS = Endpoint(
    "pool_validators",
    route="GET /api/v1/poolprotocol/validator/{validators}",
    table=PoolValidators,
    parameters=(Identifiers("validators", PoolValidators.validator_index, required=False),),
    shape=Shape.OBJECT_IF_SINGLE,
    alias="/api/v1/rocketpool/validator/{validators}",
)


@loader(POOL_VALIDATORS)
def load_pool_validators(validators: Subjects) -> Values:
    """Load the validators of the liquid-staking pool, one row per validator.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. Ether in wei. RPL (``_base_units``) in units of 10**-18 RPL:
        divide by ``10**18``. Columns of the node are null if the service does not know the node. A
        validator outside the pool has no row, and is not reported as missing.

    Notes
    -----
    ``GET /api/v1/poolprotocol/validator/{indexOrPubkey}``; on the public service, ``rocketpool``.
    Never final.
    """
    return {"validators": validators}
