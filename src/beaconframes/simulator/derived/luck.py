"""The luck of a few sets of validators, as the local explorer works it out for any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.v1._luck import luck
from beaconframes.v1.proposal_luck import ProposalLuck

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_ALONE: Final = 10


def write(source: Source) -> None:
    """Write the luck of the first validators, each alone and all together."""
    first = source.validators["validator_index"].head(_ALONE).to_list()
    rows = [
        {"validators": ",".join(map(str, members)), **luck(members, source)}
        for members in [*([index] for index in first), first]
    ]
    source.add(ProposalLuck, pl.DataFrame(rows, schema=ProposalLuck.schema()).sort("validators"))
