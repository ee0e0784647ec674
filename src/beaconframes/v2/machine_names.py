"""Names of the machines that push metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import polars as pl

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Envelope
from beaconframes.errors import SchemaError
from beaconframes.schema import Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext


class MachineNames(Table):
    """Machines with metrics. One row per machine."""

    machine = Text("Name of the machine, as its owner chose it.", key=True)

    @classmethod
    def decode(
        cls,
        pages: Iterable[bytes],
        chain: Chain,  # noqa: ARG003 - every table's
        contexts: Sequence[EnvelopeContext] = (),  # noqa: ARG003
    ) -> pl.DataFrame:
        """Return the names; the items are text, not objects."""
        names: list[str] = []
        for page in pages:
            try:
                names += msgspec.json.decode(page, type=list[str])
            except msgspec.MsgspecError as error:
                raise SchemaError(f"machine_names is not a list of text ({error})") from None
        return pl.DataFrame({"machine": names}, schema=cls.schema())

    @classmethod
    def encode(
        cls,
        frame: pl.DataFrame,
        chain: Chain,  # noqa: ARG003 - every table's
        *,
        without: Collection[str] = (),  # noqa: ARG003
        public: bool = False,  # noqa: ARG003
    ) -> bytes:
        """Return the names as a list of texts."""
        return msgspec.json.encode(frame["machine"].to_list())


MACHINE_NAMES = Endpoint(
    "machine_names",
    route="POST /api/v2/machine-metrics/machine-names",
    table=MachineNames,
    envelope=Envelope.V2,
)


@loader(MACHINE_NAMES)
def load_machine_names() -> Values:
    """Load the names of machines that pushed metrics with this key, one row per machine.

    One request.

    Returns
    -------
    polars.DataFrame
        Sorted by ``machine``.

    Notes
    -----
    ``POST /api/v2/machine-metrics/machine-names``. Never final.
    """
    return {}
