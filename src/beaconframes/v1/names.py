"""ENS names and their addresses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from beaconframes.client import Values, loader
from beaconframes.endpoint import ADDRESS, ENS_NAME, Endpoint, Shape, Texts
from beaconframes.schema import Hex, SameAddress, Table, Text


class Names(Table):
    """ENS lookups. One row per requested name or address."""

    requested = Text("Requested name or address.", key=True, context="request.domain")
    address = Hex("Address of the name, or the requested address.")
    domain = Text(
        "Primary name of the address; may differ from the requested name; empty if it has none.",
        nullable=True,
    )

    invariants = (SameAddress(),)


@dataclass(frozen=True)
class NameLookup(Texts):
    """Names and addresses; an address without a name has a response too."""


NAMES = Endpoint(
    "names",
    route="GET /api/v1/ens/lookup/{domain}",
    table=Names,
    parameters=(
        NameLookup(
            "names",
            wire="domain",
            pattern=f"{ADDRESS}|{ENS_NAME}",
            what="a name such as vitalik.eth or an address of 40 hex digits",
            column=Names.requested,
            error="failed to resolve ens",
        ),
    ),
    shape=Shape.OBJECT,
    absent="failed to resolve ens",
)


@loader(NAMES, missing="unknown names")
def load_names(names: str | Iterable[str]) -> Values:
    """Load the addresses of ENS names, and the names of addresses, one row per name or address.

    One request each, in both directions.

    Parameters
    ----------
    names
        Names that end in ``.eth``, or addresses: one, or a list or Series of them, mixed.

    Returns
    -------
    polars.DataFrame
        Sorted by ``requested``, the name or address. ``domain`` is the primary name of the address,
        which may differ from the requested name; it is empty for an address without one.

    Notes
    -----
    ``GET /api/v1/ens/lookup/{domain}``. Never final: a name can move to another address.
    """
    return {"names": names}
