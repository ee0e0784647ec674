"""Attestation efficiency: the inclusion delay of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.active_periods import Lifetime
from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, Subjects, load
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Number, Table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


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


@overload
def load_attestation_efficiency(validators: Subjects, **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_attestation_efficiency(validators: Subjects, **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_attestation_efficiency(
    validators: Subjects, **options: Unpack[Pandas]
) -> pd.DataFrame: ...
def load_attestation_efficiency(
    validators: Subjects,
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the attestation efficiency of validators, one row per validator. Lower is better.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    explorer, strict, lazy, frame, max_requests
        See `load_validators`. With ``strict=True``, validators without a row raise `MissingRows`
        instead of a warning.

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
    return load(
        ATTESTATION_EFFICIENCY,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
