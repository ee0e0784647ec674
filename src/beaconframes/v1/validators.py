"""Validators: identity, status and balance."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers, Post, Shape
from beaconframes.schema import Count, Epoch, Flag, Gwei, Hex, Slot, Table, Text


class Validators(Table):
    """Validators. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validator_index", "validatorindex"))
    pubkey = Hex("BLS public key, 48 bytes.", size=48)
    status = Text("Status, such as active_online; the service may add values.")
    slashed = Flag("Whether the validator was slashed.")
    balance_gwei = Gwei("Balance in the latest processed epoch.", wire="balance", minimum=0)
    effective_balance_gwei = Gwei(
        "Effective balance in the latest processed epoch, up to 2048 ETH.",
        wire=("effective_balance", "effectivebalance"),
        minimum=0,
    )
    activation_eligibility_epoch = Epoch(
        "Epoch of eligibility for activation; null until then.",
        wire=("activation_eligibility_epoch", "activationeligibilityepoch"),
        nullable=True,
    )
    activation_epoch = Epoch(
        "Epoch of activation; null until it is set.",
        wire=("activation_epoch", "activationepoch"),
        nullable=True,
    )
    exit_epoch = Epoch(
        "Epoch of exit; null until it is set.", wire=("exit_epoch", "exitepoch"), nullable=True
    )
    withdrawable_epoch = Epoch(
        "Epoch from which the whole balance can be withdrawn; null until it is set.",
        wire=("withdrawable_epoch", "withdrawableepoch"),
        nullable=True,
    )
    last_attestation_slot = Slot(
        "Slot of the latest attestation; null if there is none.",
        wire=("last_attestation_slot", "lastattestationslot"),
        none=0,
        nullable=True,
    )
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes: 0x00 BLS, 0x01 address, 0x02 compounding.",
        wire=("withdrawal_credentials", "withdrawalcredentials"),
    )
    name = Text("Name on the service; empty or null without one. Do not trust it.", nullable=True)
    total_withdrawals_gwei = Gwei(
        "Sum of all withdrawals so far.", wire="total_withdrawals", optional=True, minimum=0
    )

    public_spelling = -1


VALIDATORS = Endpoint(
    "validators",
    route="GET /api/v1/validator/{validators}",
    table=Validators,
    parameters=(
        Identifiers(
            "validators", Validators.validator_index, pubkey=Validators.pubkey, longest=None
        ),
    ),
    shape=Shape.OBJECT_IF_SINGLE,
    post=Post("/api/v1/validator", arg="validators", field="indicesOrPubkey"),
    absent=UNRESOLVED,
    lifetime=Lifetime.KNOWN,
)


@loader(VALIDATORS)
def load_validators(validators: Subjects) -> Values:
    """Load validators, one row per validator, as of the latest processed epoch.

    100 validators per request; public keys that are too long for a URL are sent by POST.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length. A
        text may be a list, as on the command line: ``"1,2,100-199"``.
    explorer
        The explorer to load from. Default: that of ``bf.connect`` or ``bf.local``.
    strict
        Whether missing rows, such as unknown validators, raise `MissingRows` instead of a warning.
        Missing rows are requested once more first. A gap between final rows raises
        ``IntegrityError`` in any case. Both errors have the received rows in ``rows`` and list the
        missing ones in ``missing``.
    lazy
        Whether to return a `polars.LazyFrame` over the store, for results larger than memory. Its
        rows are not sorted.
    frame
        ``"polars"`` or ``"pandas"``: the kind of frame. Default: that of the explorer.
    max_requests
        Raise `RequestLimitExceeded` if the call needs more requests than this, before it sends any.
        If the number of pages is unknown, the call raises it after that many requests; see
        `beaconframes.plan`.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. Amounts in gwei. An epoch that is not set yet is null.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}`` and ``POST /api/v1/validator``. Never final.
    """
    return {"validators": validators}
