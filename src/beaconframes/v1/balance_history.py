"""Balances of validators by epoch."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, EpochWindow, Finality, Identifiers
from beaconframes.schema import WEEK_OF_EPOCH, Count, Epoch, EpochTime, Gwei, Table
from beaconframes.time_range import Moment


class BalanceHistory(Table):
    """Balances. One row per validator per epoch, after the block of the epoch's first slot."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    epoch = Epoch("Epoch.", key=True)
    time = EpochTime("Start of the epoch, UTC.")
    balance_gwei = Gwei(
        "Balance after the block of the epoch's first slot.", wire="balance", minimum=0
    )
    effective_balance_gwei = Gwei(
        "Effective balance in the epoch.",
        wire=("effectivebalance", "effective_balance"),
        minimum=0,
    )

    calendar_fields = WEEK_OF_EPOCH


BALANCE_HISTORY = Endpoint(
    "balance_history",
    route="GET /api/v1/validator/{validators}/balancehistory",
    table=BalanceHistory,
    parameters=(Identifiers("validators", BalanceHistory.validator_index),),
    pagination=EpochWindow(BalanceHistory.epoch),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    absent=UNRESOLVED,
    lifetime=Lifetime.BALANCE,
)


@loader(BALANCE_HISTORY, missing="missing rows")
def load_balance_history(
    validators: Subjects, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load balances, one row per validator per epoch, in gwei.

    100 validators and 100 epochs per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        (``since=-250`` is the last 250), a date, a datetime or ``"30d"``. Default: the last 100
        processed epochs.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``epoch``. The balance of a validator that has exited and
        withdrawn is 0.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/balancehistory``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until}
