"""How soon the attestations of validators were included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

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
        "1.0 is best: every attestation was in the next slot; 2.0 is worst: none was included."
    )


ATTESTATION_EFFICIENCY = Endpoint(
    "attestation_efficiency",
    route="GET /api/v1/validator/{validators}/attestationefficiency",
    table=AttestationEfficiency,
    parameters=(Identifiers("validators", AttestationEfficiency.validator_index),),
    absent=UNRESOLVED,
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
    """Load how soon attestations were included, one row per validator. Less is better.

    100 validators a request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        ``strict=True`` raises `MissingRows` for validators without a row, instead of warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. ``attestation_efficiency`` is 2 less the mean, over the 100
        epochs before the latest, of 1 / (inclusion slot - attested slot), a missed duty counting 0.
        So 1.0 is best (every attestation included in the next slot), 1.5 is two slots late on the
        whole, and 2.0 is worst (none included). A skipped slot makes it worse, though the validator
        cannot help it. The service has no row of a validator without duties.

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
