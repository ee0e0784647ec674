"""Public keys as indices, for the endpoint that takes an index only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.client import load
from beaconframes.endpoint.identifiers import normalise
from beaconframes.v1.validators import VALIDATORS

if TYPE_CHECKING:
    from beaconframes.client import Explorer, Options, Subjects


def indices(validators: Subjects, explorer: Explorer | None, options: Options) -> list[int]:
    """Return the indices of *validators*; public keys cost a request for every 100 of them.

    Keys that no validator has are left out, after the warning or the error that names them.
    """
    named = normalise(validators)
    keys = [item for item in named if item.startswith("0x")]
    known: dict[str, int] = {}
    if keys:
        rows = load(VALIDATORS, explorer, options, validators=keys)
        known = dict(zip(rows["pubkey"], rows["validator_index"], strict=True))
    found = (known.get(item) if item.startswith("0x") else int(item) for item in named)
    return [int(index) for index in found if index is not None]
