"""Validators: identity, status and balance."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Count, Epoch, Flag, Hex, SamePubkey, Table, Text, Wei
from beaconframes.v2._columns import FINALITY, NO_VALIDATORS, NullableEpoch


class Validators(Table):
    """Validators. One row per validator."""

    invariants = (SamePubkey(),)

    filled_objects = ("life_cycle_epochs",)

    validator_index = Count(
        "Validator; null until the deposit creates one.",
        key=True,
        nullable=True,
        wire="validator.index",
    )
    pubkey = Hex("BLS public key, 48 bytes.", key=True, wire="validator.public_key", size=48)
    status = Text("Status, such as active_ongoing; the service may add values.")
    slashed = Flag("Whether the validator was slashed.")
    online = Flag("Whether the validator attests; null without attestation duties.", optional=True)
    balance_wei = Wei("Balance.", wire="balances.current", text=True, minimum=0)
    effective_balance_wei = Wei(
        "Effective balance.", wire="balances.effective", text=True, minimum=0
    )
    activation_eligibility_epoch = NullableEpoch(
        "Epoch of eligibility for activation; null until then.",
        wire="life_cycle_epochs.activation_eligibility",
        nullable=True,
    )
    activation_epoch = NullableEpoch(
        "Epoch of activation; null until it is set.",
        wire="life_cycle_epochs.activation",
        nullable=True,
    )
    exit_epoch = NullableEpoch(
        "Epoch of exit; null until it is set.", wire="life_cycle_epochs.exit", nullable=True
    )
    withdrawable_epoch = NullableEpoch(
        "Epoch from which the whole balance can be withdrawn; null until it is set.",
        wire="life_cycle_epochs.withdrawable",
        nullable=True,
    )
    withdrawal_type = Text(
        "Kind of the withdrawal credentials: bls or execution_address.",
        wire="withdrawal_credentials.type",
        nullable=True,
    )
    withdrawal_prefix = Hex(
        "First byte of the credentials: 0x00 BLS, 0x01 address, 0x02 compounding.",
        wire="withdrawal_credentials.prefix",
        nullable=True,
    )
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes.", wire="withdrawal_credentials.credential", nullable=True
    )
    withdrawal_address = Hex(
        "Withdrawal address; null for BLS credentials.",
        wire="withdrawal_credentials.address",
        nullable=True,
    )
    finality = Text(FINALITY, final_when=("finalized",))
    epoch = Epoch("Epoch of the observation.", context="range.epoch.end")


VALIDATORS = Endpoint(
    "validators",
    route="POST /api/v2/ethereum/validators",
    table=Validators,
    parameters=(
        ChainName(),
        ValidatorSelector(Validators.validator_index, pubkey=Validators.pubkey),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
    absent=NO_VALIDATORS,
    lifetime=Lifetime.KNOWN,
)


@loader(VALIDATORS, missing="validators that do not exist")
def load_validators(validators: SubjectsOrSet) -> Values:
    """Load validators, one row per validator, as of now, with amounts in wei.

    100 validators per call (20 on the smallest plans), ten rows per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length. Or a
        set: `dashboard`, or on the larger plans `withdrawal`, `deposit_address`, `entity`, `owner`,
        `operator`.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``pubkey``.

    Notes
    -----
    ``POST /api/v2/ethereum/validators``. `beaconframes.load_validators` loads the same from V1, a
    hundred rows per request. Never final.
    """
    return {"validators": validators}
