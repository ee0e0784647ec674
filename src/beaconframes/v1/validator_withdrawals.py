"""Withdrawals of validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality, Identifiers, LastEpochs
from beaconframes.endpoint.parameter import permit_any_text
from beaconframes.schema import Count, Epoch, Gwei, Hex, Slot, SlotInEpoch, SlotTime, Table
from beaconframes.time_range import Moment


class ValidatorWithdrawals(Table):
    """Withdrawals. One row per withdrawal."""

    withdrawal_index = Count(
        "Number of the withdrawal, counted over the whole chain.", key=True, wire="withdrawalindex"
    )
    validator_index = Count("Validator.", wire=("validatorindex", "validator_index"))
    epoch = Epoch("Epoch of the slot.")
    slot = Slot("Slot of the block with the withdrawal.")
    time = SlotTime("Start of the slot, UTC.")
    block_root = Hex("Root of that block.", wire="blockroot")
    address = Hex("Recipient of the withdrawal.")
    amount_gwei = Gwei("Withdrawn amount.", wire="amount", minimum=0)

    invariants = (SlotInEpoch(),)


@dataclass(frozen=True)
class WithdrawalWindow(LastEpochs):
    """The 100 epochs that end at ``epoch``; an invalid value means the latest epoch."""

    field_schemas: ClassVar = permit_any_text(LastEpochs.field_schemas)


VALIDATOR_WITHDRAWALS = Endpoint(
    "validator_withdrawals",
    route="GET /api/v1/validator/{validators}/withdrawals",
    table=ValidatorWithdrawals,
    parameters=(Identifiers("validators", ValidatorWithdrawals.validator_index, required=False),),
    pagination=WithdrawalWindow(ValidatorWithdrawals.epoch, length=100),
    finality=Finality.AT_FINALITY,
)


@loader(VALIDATOR_WITHDRAWALS)
def load_validator_withdrawals(
    validators: Subjects, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the withdrawals of validators, one row per withdrawal, in gwei.

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
        Sorted by ``withdrawal_index``, which is chronological. A validator without withdrawals has
        no rows, and is not reported as missing.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/withdrawals``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until}
