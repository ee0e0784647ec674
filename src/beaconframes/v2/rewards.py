"""Rewards of validators by duty and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.active_periods import Lifetime
from beaconframes.calendar import Moment
from beaconframes.client import EagerRange, Explorer, Frame, LazyRange, PandasRange, load
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
from beaconframes.v2._arguments import SubjectsOrSet
from beaconframes.v2._columns import NO_VALIDATORS
from beaconframes.v2._reward_columns import RewardColumns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


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


@overload
def load_rewards(validators: SubjectsOrSet, **options: Unpack[EagerRange]) -> pl.DataFrame: ...
@overload
def load_rewards(validators: SubjectsOrSet, **options: Unpack[LazyRange]) -> pl.LazyFrame: ...
@overload
def load_rewards(validators: SubjectsOrSet, **options: Unpack[PandasRange]) -> pd.DataFrame: ...
def load_rewards(
    validators: SubjectsOrSet,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
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
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`. With ``strict=True``, missing rows raise `MissingRows`
        instead of a warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``pubkey``, ``epoch``. Penalties are positive amounts; only
        ``*total_wei`` may be negative.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/rewards-list``. Finalized epochs only, so rows are final.
    """
    return load(
        REWARDS,
        {"validators": validators, "since": since, "until": until},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
