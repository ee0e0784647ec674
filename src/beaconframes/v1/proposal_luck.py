"""Proposal luck: proposed over expected blocks."""

from __future__ import annotations

from dataclasses import dataclass

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Batch, Endpoint, ExpectedRows, Identifiers, Shape
from beaconframes.errors import UsageError
from beaconframes.schema import Number, Table, Text, UnixTime


class ProposalLuck(Table):
    """Proposal luck. One row per set of validators."""

    validators = Text(
        "Requested validators of the set, separated by commas.",
        key=True,
        context="request.validators",
    )
    proposal_luck = Number(
        "Proposed over expected blocks: 1 is as expected; null without a proposal.", nullable=True
    )
    average_proposal_interval = Number("Expected slots between two proposals.", optional=True)
    next_proposal_estimate_time = UnixTime(
        "Expected time of the next proposal, UTC.", wire="next_proposal_estimate_ts", optional=True
    )
    time_frame = Text(
        "Time frame of proposal_luck, such as month or year.", wire="time_frame_name", nullable=True
    )


@dataclass(frozen=True)
class SingleSet(Identifiers):
    """A set of validators, in one request."""

    @property
    def required_fields(self) -> tuple[str, ...]:
        """Return the query's field of the set."""
        return (self.arg,)

    def divide(self, items: list[str], at_most: int) -> list[Batch]:
        """Return one batch; raise UsageError for a set that is too large for one request."""
        batches = super().divide(items, at_most)
        if len(batches) > 1:
            raise UsageError(
                f"{self.arg} is too large for one request; luck of parts cannot be combined",
                hint=f"Pass at most {at_most} validators, by index: public keys are longer",
            )
        return batches

    def expected(self, batch: list[str]) -> tuple[ExpectedRows, ...]:
        """Return no rows: the row contains only the requested set, so there is nothing to check."""
        return ()


PROPOSAL_LUCK = Endpoint(
    "proposal_luck",
    route="GET /api/v1/validators/proposalLuck",
    table=ProposalLuck,
    parameters=(SingleSet("validators", ProposalLuck.validators),),
    shape=Shape.OBJECT,
)


@loader(PROPOSAL_LUCK)
def load_proposal_luck(validators: Subjects) -> Values:
    """Load the proposal luck of a set of validators, one row for the whole set.

    One request. At most 100 validators: the luck of a set does not follow from that of its parts.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed.

    Returns
    -------
    polars.DataFrame
        One row; ``validators`` names the set. ``proposal_luck`` is blocks proposed over blocks
        expected: 1 is as expected, 2 is twice as many. It and ``time_frame`` are null for a set
        without proposals.

    Notes
    -----
    ``GET /api/v1/validators/proposalLuck``. Never final.
    """
    return {"validators": validators}
