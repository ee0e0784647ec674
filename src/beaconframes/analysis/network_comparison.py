"""Votes beside those of the whole network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.attestation_losses import WEIGHTS
from beaconframes.analysis.engines import open_frame, return_table
from beaconframes.frames import collect, select_columns
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_COUNTS = ["votes", "missed", *WEIGHTS]
_ASSIGNED, _INCLUDED = "attestations_assigned", "attestations_included"


@show_elapsed
def compare_with_network(rates: IntoFrameT, network: IntoFrame) -> IntoFrameT:
    """Compare shares of votes with those of the whole network. One row per measure.

    Parameters
    ----------
    rates
        Frame of `attestation_rates`; its rows are added up.
    network
        Frame of `v2.load_network_performance`, of about the same time.

    Returns
    -------
    The same kind of frame as *rates*
        ``measure``: ``included_rate``, ``source_rate``, ``target_rate``, ``head_rate`` and
        ``effectiveness``, which weighs the three votes as the protocol rewards them. ``own``,
        ``network`` and their ``difference`` are shares of all votes. This computes eagerly.
    """
    source = open_frame(rates, _COUNTS, loader="analysis.attestation_rates")
    counts = collect(source).select(pl.sum(*_COUNTS))
    correct = {f"valuable_correct_{vote}": vote for vote in WEIGHTS}
    columns = [_ASSIGNED, _INCLUDED, *correct]
    totals = collect(select_columns(network, columns, loader="v2.load_network_performance"))
    others = totals.head(1).rename({_ASSIGNED: "votes", **correct})
    others = others.with_columns(missed=pl.col("votes") - pl.col(_INCLUDED))
    sides = [
        _compute_shares(table).unpivot(variable_name="measure", value_name=name)
        for name, table in (("own", counts), ("network", others))
    ]
    joined = sides[0].join(sides[1], on="measure", how="left", maintain_order="left")
    result = joined.with_columns(difference=pl.col("own") - pl.col("network"))
    return return_table(result, source, rates)


def _compute_shares(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the shares of one row of counts."""
    votes = pl.when(pl.col("votes") > 0).then("votes")
    weighted = pl.sum_horizontal(pl.col(vote) * weight for vote, weight in WEIGHTS.items())
    return counts.select(
        included_rate=1 - pl.col("missed") / votes,
        **{f"{vote}_rate": pl.col(vote) / votes for vote in WEIGHTS},
        effectiveness=weighted / (votes * sum(WEIGHTS.values())),
    )
