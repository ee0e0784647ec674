"""Epoch overviews: counts, balances and participation."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Finality, Shape, UnitPerRequest
from beaconframes.schema import Count, Epoch, EpochTime, Flag, Fraction, Gwei, Table
from beaconframes.time_range import Moment


class Epochs(Table):
    """Epoch overviews. One row per epoch."""

    epoch = Epoch("Epoch.", key=True)
    time = EpochTime("Start of the epoch, UTC.", wire="ts")
    finalized = Flag("Whether the epoch is finalized.", final_when=(True,))
    validators_count = Count("Validators active in the epoch.", wire="validatorscount")
    average_validator_balance_gwei = Gwei(
        "Mean balance.", wire="averagevalidatorbalance", minimum=0
    )
    total_validator_balance_gwei = Gwei("Sum of balances.", wire="totalvalidatorbalance", minimum=0)
    global_participation_rate = Fraction(
        "Share of the eligible balance that voted; 0 until the epoch has ended.",
        wire="globalparticipationrate",
        nullable=True,
    )
    eligible_ether_gwei = Gwei(
        "Effective balance of validators that could vote.",
        wire="eligibleether",
        nullable=True,
        minimum=0,
    )
    voted_ether_gwei = Gwei(
        "Effective balance of validators that voted.", wire="votedether", nullable=True, minimum=0
    )
    blocks_count = Count("Canonical blocks; 0 until the epoch has ended.", wire="blockscount")
    proposed_blocks = Count("Slots with a canonical block.", wire="proposedblocks")
    missed_blocks = Count("Slots without a block.", wire="missedblocks")
    orphaned_blocks = Count("Blocks that did not become canonical.", wire="orphanedblocks")
    scheduled_blocks = Count(
        "Slots that have not started.", wire="scheduledblocks", final_when=(0,)
    )
    attestations_count = Count("Attestations included.", wire="attestationscount")
    attester_slashings_count = Count("Attester slashings included.", wire="attesterslashingscount")
    proposer_slashings_count = Count("Proposer slashings included.", wire="proposerslashingscount")
    deposits_count = Count("Deposits included.", wire="depositscount")
    withdrawals_count = Count("Withdrawals included.", wire="withdrawalcount", optional=True)
    voluntary_exits_count = Count("Voluntary exits included.", wire="voluntaryexitscount")
    rewards_exported = Flag(
        "Whether the service has computed the epoch's rewards.", final_when=(True,), optional=True
    )


EPOCHS = Endpoint(
    "epochs",
    route="GET /api/v1/epoch/{epoch}",
    table=Epochs,
    pagination=UnitPerRequest(
        Epochs.epoch,
        wire="epoch",
        tags=("latest", "finalized"),
        error="invalid epoch parameter",
        refuses_future=True,
    ),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    shape=Shape.OBJECT,
)


@loader(EPOCHS, missing="missing rows")
def load_epochs(*, since: Moment | None = None, until: Moment | None = None) -> Values:
    """Load epoch overviews, one row per epoch.

    One request per epoch.

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
        Sorted by ``epoch``. Amounts in gwei. Counts and rates of the current epoch are provisional.

    Notes
    -----
    ``GET /api/v1/epoch/{epoch}``. Final once the epoch is finalized.
    """
    return {"since": since, "until": until}
