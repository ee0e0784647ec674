"""The proposal luck of a few sets of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.v1._proposal_luck import compute_luck
from beaconframes.v1.proposal_luck import ProposalLuck

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_COUNT: Final = 10


def write_tables(data: ChainData) -> None:
    """Write the luck of the first validators, separately and together."""
    first = data.validators["validator_index"].head(_COUNT).to_list()
    rows = [
        {"validators": ",".join(map(str, members)), **compute_luck(members, data)}
        for members in [*([index] for index in first), first]
    ]
    data.add(ProposalLuck, pl.DataFrame(rows, schema=ProposalLuck.schema()).sort("validators"))
