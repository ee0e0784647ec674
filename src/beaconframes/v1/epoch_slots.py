"""Blocks of epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, ExpectedRows, Finality, UnitPerRequest
from beaconframes.time_range import Moment
from beaconframes.v1._blocks import Blocks

if TYPE_CHECKING:
    from beaconframes.endpoint import ChainHead, Fields


@dataclass(frozen=True)
class EachEpoch(UnitPerRequest):
    """One epoch per request; the service counts votes only for a block requested by slot."""

    def expected(self, number: int, chain_head: ChainHead) -> ExpectedRows:
        """Return the epoch; once final, it has a row for each slot."""
        slots = (Blocks.slot.name, chain_head.chain.slots_per_epoch)
        return ExpectedRows({self.column.name: [number]}, parts=slots)

    def omitted_fields(self, fields: Fields) -> set[str]:
        """Return the field of a block that these responses do not have."""
        return {"votes"}


EPOCH_SLOTS = Endpoint(
    "epoch_slots",
    route="GET /api/v1/epoch/{epoch}/slots",
    table=Blocks,
    pagination=EachEpoch(
        Blocks.epoch,
        wire="epoch",
        tags=("latest", "finalized"),
        error="invalid epoch parameter",
        refuses_future=True,
    ),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
)


@loader(EPOCH_SLOTS, missing="missing rows")
def load_epoch_slots(*, since: Moment | None = None, until: Moment | None = None) -> Values:
    """Load the blocks of epochs, one row per block; a missed slot has a row too.

    One request per epoch. A slot with an orphaned block beside the canonical one has two rows. The
    current epoch has only the slots so far.

    Parameters
    ----------
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest,
        a date, a datetime or ``"12h"``. Default: the latest epoch.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``block_root``. ``status`` is proposed, missed or orphaned. Execution
        columns are null for a block without a payload.

    Notes
    -----
    ``GET /api/v1/epoch/{epoch}/slots``. Final once the epoch is finalized.
    """
    return {"since": since, "until": until}
