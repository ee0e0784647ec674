"""Rewards of validators by duty and epoch."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    EpochSelector,
    Finality,
    ValidatorSelector,
)
from beaconframes.schema import Count, Epoch, EpochTime, Hex, SamePubkey
from beaconframes.time_range import Moment
from beaconframes.v2._columns import NO_VALIDATORS
from beaconframes.v2._reward_columns import RewardColumns


class Rewards(RewardColumns):
    """Rewards by duty. One row per validator per epoch. Penalties are positive: subtract them."""

    invariants = (SamePubkey(),)

    validator_index = Count("Validator.", key=True, nullable=True, wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", key=True, wire="validator.public_key", size=48)
    epoch = Epoch("Epoch of the duties.", key=True, context=("range.epoch.start", "request.epoch"))
    time = EpochTime("Start of the epoch, UTC.")


REWARDS = Endpoint(
    "rewards",
    route="POST /api/v2/ethereum/validators/rewards-list",
    table=Rewards,
    parameters=(
        ChainName(),
        ValidatorSelector(Rewards.validator_index, pubkey=Rewards.pubkey),
        EpochSelector(Rewards.epoch, finalized=True),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    absent=NO_VALIDATORS,
    lifetime=Lifetime.PENALTIES,
)


@loader(REWARDS, missing="missing rows")
def load_rewards(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the rewards of both layers by duty, one row per validator per epoch, in wei.

    One epoch per call and ten rows per request: a year of one validator is 82,000 requests, and of
    a hundred 820,000. `load_rewards_aggregate` loads the sum over a window in one request. For the
    consensus layer alone, `beaconframes.load_income_history` loads a hundred validators and epochs
    per request.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        finalized epoch (``since=-10`` is the last ten), a date, a datetime or ``"2h"``. Default:
        the latest finalized epoch.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``pubkey``, ``epoch``. Penalties are positive amounts; only
        ``*total_wei`` may be negative.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/rewards-list``. Finalized epochs only, so rows are final.
    """
    return {"validators": validators, "since": since, "until": until}
