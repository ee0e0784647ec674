"""Duty scores of validators by epoch."""

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
from beaconframes.v2._score_columns import ScoreColumns


class Performance(ScoreColumns):
    """Duty scores. One row per validator per epoch."""

    invariants = (SamePubkey(),)

    validator_index = Count("Validator.", key=True, nullable=True, wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", key=True, wire="validator.public_key", size=48)
    epoch = Epoch("Epoch of the duties.", key=True, context=("range.epoch.start", "request.epoch"))
    time = EpochTime("Start of the epoch, UTC.")


PERFORMANCE = Endpoint(
    "performance",
    route="POST /api/v2/ethereum/validators/performance-list",
    table=Performance,
    parameters=(
        ChainName(),
        ValidatorSelector(Performance.validator_index, pubkey=Performance.pubkey),
        EpochSelector(Performance.epoch, finalized=True),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    absent=NO_VALIDATORS,
    lifetime=Lifetime.DUTIES,
)


@loader(PERFORMANCE, missing="missing rows")
def load_performance(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the duty scores of validators (BeaconScore and its counts), one row per validator per
    epoch.

    One epoch per call and ten rows per request: a year of one validator is 82,000 requests.
    `load_performance_aggregate` loads a set over a window in one request;
    `beaconframes.load_attestations` loads the single votes of a hundred validators and epochs per
    request.

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
        Sorted by ``validator_index``, ``pubkey``, ``epoch``. Do not average scores: add up the
        counts, or load the aggregate. The service requires its badge beside every BeaconScore that
        is published.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/performance-list``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until}
