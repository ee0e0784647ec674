"""Attestation efficiency: the inclusion delay of validators."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Number, Table


class AttestationEfficiency(Table):
    """Attestation efficiency. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    attestation_efficiency = Number(
        "1.0 is best: every attestation was included in the next slot; 2.0 is worst: none was."
    )


ATTESTATION_EFFICIENCY = Endpoint(
    "attestation_efficiency",
    route="GET /api/v1/validator/{validators}/attestationefficiency",
    table=AttestationEfficiency,
    parameters=(Identifiers("validators", AttestationEfficiency.validator_index),),
    absent=UNRESOLVED,
    lifetime=Lifetime.DUTIES,
)


@loader(ATTESTATION_EFFICIENCY, missing="validators without a row")
def load_attestation_efficiency(validators: Subjects) -> Values:
    """Load the attestation efficiency of validators, one row per validator. Lower is better.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. ``attestation_efficiency`` is 2 minus the mean of 1 /
        (inclusion slot - attested slot) over the 100 epochs before the latest, where a missed duty
        counts 0. 1.0 is best: every attestation was included in the next slot. 1.5 is an average
        delay of two slots, and 2.0 is worst: none was included. A slot without a block increases
        the value, although the validator is not at fault. The service has no row for a validator
        without duties.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/attestationefficiency``. Never final.
    """
    return {"validators": validators}
