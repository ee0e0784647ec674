"""Rewards of a set of validators, summed over a window."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Endpoint,
    Envelope,
    RollingWindow,
    Shape,
    ValidatorSelector,
)
from beaconframes.v2._columns import WindowColumns
from beaconframes.v2._reward_columns import RewardColumns


class RewardsAggregate(WindowColumns, RewardColumns):
    """Rewards of a set over a window. One row. Penalties are positive: subtract them."""

    @classmethod
    def arrange(cls, frame: pl.DataFrame, first: str = "") -> pl.DataFrame:  # noqa: ARG003
        """Return one row for the set: the amounts of its parts are added exactly."""
        if frame.height < 2:
            return frame
        amounts = cs.by_dtype(pl.Decimal(28, 0))
        # No part may have a reward of this kind; any other amount that is null is unknown.
        optional = amounts & cs.starts_with("attestation_inclusion_delay_")
        known = amounts - optional
        sums = [
            pl.when(known.null_count() == 0).then(known.sum()),
            pl.when(optional.count() > 0).then(optional.sum()),
        ]
        return frame.select(
            pl.col("window").first(),
            pl.col("first_epoch", "start_time").min(),
            pl.col("last_epoch", "end_time").max(),
            *(each.cast(pl.Decimal(28, 0)) for each in sums),
            pl.col("finality").first()
            if frame["finality"].n_unique() == 1
            else pl.lit("not_finalized").alias("finality"),
        ).select(cls.schema().names())


REWARDS_AGGREGATE = Endpoint(
    "rewards_aggregate",
    route="POST /api/v2/ethereum/validators/rewards-aggregate",
    table=RewardsAggregate,
    parameters=(
        ChainName(),
        ValidatorSelector(batched="added"),
        RollingWindow(RewardsAggregate.last_epoch),
    ),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(REWARDS_AGGREGATE)
def load_rewards_aggregate(validators: SubjectsOrSet, window: str = "30d") -> Values:
    """Load the rewards of a set of validators over a window, one row, in wei.

    One request. More than 100 validators (20 on the smallest plans) take one request per hundred,
    and their amounts are added exactly.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`. Request more than a hundred
        validators either all by index or all by public key; otherwise one could be counted twice.
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs that the service added up. If several requests return different
        epochs, the call warns with `WindowMoved`.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/rewards-aggregate``. Never final: the window moves.
    """
    return {"validators": validators, "window": window}
