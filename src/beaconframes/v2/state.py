"""The state of the network, as generation 2 has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.client import load
from beaconframes.endpoint import Endpoint, Envelope, OnChain, Shape
from beaconframes.schema import Table

if TYPE_CHECKING:
    from typing import Unpack

    import polars as pl

    from beaconframes.client import Explorer, Options


class State(Table):
    """The state of the network. One row, with whatever the service tells."""

    keeps_every_field = True


STATE = Endpoint(
    "state",
    route="POST /api/v2/ethereum/state",
    table=State,
    parameters=(OnChain(),),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


def load_state(*, explorer: Explorer | None = None, **options: Unpack[Options]) -> pl.DataFrame:
    """Load the state of the network, one row.

    `beaconframes.load_latest_state` has that of generation 1, in described columns.

    Parameters
    ----------
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        Every field of the answer is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/state``. The shape of its answer is not published: names and types
    follow from what comes. A service that does not have it yet raises `NotServed`. Never final.
    """
    return load(STATE, explorer, options)
