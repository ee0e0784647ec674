"""The proposal luck of a few sets of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.v1._proposal_luck import compute_luck
from beaconframes.v1.proposal_luck import ProposalLuck

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import ChainTables

_COUNT: Final = 10


def build_proposal_luck(data: ChainTables) -> pl.DataFrame:
    """Return the luck of the first validators, separately and together.

    A set has no row unless all blocks since the activation of its first validator are covered.
    """
    first = data.validators.sort("validator_index").head(_COUNT)
    active = first.filter(pl.col("activation_epoch") <= data.head.epoch)
    since = dict(active.select("validator_index", "activation_epoch").iter_rows())
    indices = first["validator_index"].to_list()
    rows = []
    for members in [*([index] for index in indices), indices]:
        start = min((since[index] for index in members if index in since), default=data.head.epoch)
        if data.coverage.covers("blocks", range(start, data.head.epoch + 1)):
            name = ",".join(map(str, members))
            rows.append({"validators": name, **compute_luck(members, data)})
    return pl.DataFrame(rows, schema=ProposalLuck.schema())
