"""Balances of validators by epoch."""

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
from beaconframes.schema import Count, Epoch, EpochTime, Hex, SamePubkey, Table, Text, Wei
from beaconframes.time_range import Moment
from beaconframes.v2._columns import FINALITY, NO_VALIDATORS


class Balances(Table):
    """Balances. One row per validator per epoch."""

    invariants = (SamePubkey(),)

    validator_index = Count("Validator.", key=True, nullable=True, wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", key=True, wire="validator.public_key", size=48)
    epoch = Epoch("Epoch.", key=True, context=("range.epoch.start", "request.epoch"))
    time = EpochTime("Start of the epoch, UTC.")
    balance_wei = Wei("Balance.", wire="balance.current", text=True, minimum=0)
    effective_balance_wei = Wei(
        "Effective balance.", wire="balance.effective", text=True, minimum=0
    )
    finality = Text(FINALITY, final_when=("finalized",))


BALANCES = Endpoint(
    "balances",
    route="POST /api/v2/ethereum/validators/balances",
    table=Balances,
    parameters=(
        ChainName(),
        ValidatorSelector(Balances.validator_index, pubkey=Balances.pubkey),
        EpochSelector(Balances.epoch),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    absent=NO_VALIDATORS,
    lifetime=Lifetime.BALANCE,
)


@loader(BALANCES, missing="missing rows")
def load_balances(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load balances, one row per validator per epoch, in wei.

    One epoch per call and ten rows per request: a year of one validator is 82,000 requests, and of
    a hundred 820,000. `beaconframes.load_balance_history` loads a hundred validators and epochs per
    request.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        (``since=-10`` is the last ten), a date, a datetime or ``"2h"``. Default: the latest epoch.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``pubkey``, ``epoch``.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/balances``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until}
