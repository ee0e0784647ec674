"""Block proposals of validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality, Identifiers, LastEpochs
from beaconframes.time_range import Moment
from beaconframes.v1._blocks import Blocks

if TYPE_CHECKING:
    from beaconframes.endpoint import Fields


@dataclass(frozen=True)
class ProposalWindow(LastEpochs):
    """The 101 epochs that end at ``epoch``."""

    def omitted_fields(self, fields: Fields) -> tuple[str, ...]:
        """Return the fields of a block that these responses do not have."""
        return ("withdrawalcount", "votes")


PROPOSALS = Endpoint(
    "proposals",
    route="GET /api/v1/validator/{validators}/proposals",
    table=Blocks,
    parameters=(Identifiers("validators", Blocks.proposer_index, required=False),),
    pagination=ProposalWindow(Blocks.epoch, length=101),
    finality=Finality.AT_FINALITY,
)


@loader(PROPOSALS)
def load_proposals(
    validators: Subjects, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the block proposals of validators, one row per block.

    100 validators and 101 epochs per request. Missed, orphaned and scheduled proposals have rows
    too; ``status`` distinguishes them.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        (``since=-250`` is the last 250), a date, a datetime or ``"30d"``. Default: the last 101
        processed epochs.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``block_root``; the columns of `load_epoch_slots`. A validator without
        proposals has no rows, and is not reported as missing. ``withdrawals_count`` is null: the
        service does not report it here.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/proposals``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until}
