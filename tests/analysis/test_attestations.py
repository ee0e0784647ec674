"""How soon attestations were included, and why some were late or missed."""

from fractions import Fraction

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal

SCHEMA = {
    "validator_index": pl.Int64,
    "epoch": pl.Int64,
    "attester_slot": pl.Int64,
    "inclusion_slot": pl.Int64,
    "status": pl.String,
}


def duties(*rows):
    """Duties from (validator, slot, slot of inclusion or None)."""
    return pl.DataFrame(
        [
            (validator, slot // 32, slot, found, "missed" if found is None else "included")
            for validator, slot, found in rows
        ],
        schema=SCHEMA,
        orient="row",
    )


def chain_of(first, text):
    """Blocks from letters: p proposed, m missed, o orphaned, s scheduled."""
    words = {"p": "proposed", "m": "missed", "o": "orphaned", "s": "scheduled"}
    return pl.DataFrame(
        [(first + i, words[letter]) for i, letter in enumerate(text) if letter != "?"],
        schema={"slot": pl.Int64, "status": pl.String},
        orient="row",
    )


ROWS = duties(
    (1, 0, 1),  # as soon as possible
    (1, 33, 36),  # slots 34 and 35 have no block: not a fault of the validator
    (1, 66, 70),  # there was a block in 67
    (2, 0, None),  # there were blocks
    (2, 34, 36),  # one slot without a block, as for validator 1
    (2, 66, 67),
    (3, 96, None),  # of an epoch that is not over: still open
    (1, 130, 131),  # two epochs later
)
BLOCKS = chain_of(0, "pp" + "m" * 30 + "ppmop" + "p" * 27 + "ppppp?ppp")


def test_pending_duties_do_not_count():
    """H4: neither as a duty nor as a miss, also with until."""
    rows = duties((1, 0, 1), (1, 33, None), (1, 66, None)).with_columns(
        status=pl.Series(["included", "missed", "pending"])
    )

    result = analysis.attestation_effectiveness(rows, until=2)

    assert (2, 1, 1) == result.select("duties", "included", "missed").row(0)
    assert [1] == analysis.attestation_faults(rows, until=2)["epoch"].to_list()


def test_ratings_by_hand():
    """Distances 1, 3 and 4 of one validator; a missed duty of the other has effectiveness 0."""
    result = analysis.attestation_effectiveness(ROWS, BLOCKS)

    expected = pl.DataFrame(
        {
            "validator_index": [1, 2],
            "duties": [3, 3],
            "included": [3, 2],
            "missed": [0, 1],
            "late": [2, 1],
            "mean_distance": [8 / 3, 1.5],
            "effectiveness": [
                float(Fraction(1) + Fraction(1, 3) + Fraction(1, 4)) / 3,
                float(Fraction(1, 2) + 1) / 3,
            ],
            "effectiveness_possible": [(1 + 1 + 1 / 4) / 3, (1 + 1) / 3],
        }
    )
    assert_equal(expected, result)


def test_faults_by_hand():
    """Each fault has the reason that the blocks show."""
    result = analysis.attestation_faults(ROWS, BLOCKS)

    expected = pl.DataFrame(
        [
            (2, 0, 0, None, None, "missed", "own fault"),
            (1, 1, 33, 36, 3, "late", "block missing"),
            (2, 1, 34, 36, 2, "late", "block missing"),
            (1, 2, 66, 70, 4, "late", "own fault"),
        ],
        schema={
            "validator_index": pl.Int64,
            "epoch": pl.Int64,
            "attester_slot": pl.Int64,
            "inclusion_slot": pl.Int64,
            "distance": pl.Int64,
            "fault": pl.String,
            "reason": pl.String,
        },
        orient="row",
    )
    assert_equal(expected, result)


def reason(slot, found, blocks):
    (row,) = analysis.attestation_faults(duties((1, slot, found)), blocks, until=9).iter_rows(
        named=True
    )
    return row["reason"]


def test_reasons_outside_of_the_blocks_are_null():
    """A slot that is not covered may have had a block; an orphaned one could include nothing."""
    assert reason(0, 3, chain_of(0, "pmmp")) == "block missing"
    assert reason(0, 3, chain_of(0, "pomp")) == "block missing"
    assert reason(0, 3, chain_of(0, "pmpp")) == "own fault"
    assert reason(0, 3, chain_of(0, "p?pp")) is None
    assert reason(0, 3, chain_of(0, "pm?p")) is None
    assert reason(0, 3, chain_of(0, "pmm")) == "block missing"
    assert reason(0, 3, chain_of(10, "pmm")) is None


def test_a_missed_duty_could_be_included_until_the_end_of_the_next_epoch():
    """A duty of slot 5 can be included up to slot 63."""
    none = "m" * 64
    assert reason(5, None, chain_of(0, none)) == "block missing"
    assert reason(5, None, chain_of(0, none + "p")) == "block missing"
    assert reason(5, None, chain_of(0, none[:-1] + "p")) == "own fault"
    assert reason(5, None, chain_of(0, none[:-1])) is None
    assert reason(5, None, chain_of(0, none[:-1] + "s")) is None


def test_groups_are_labels_or_all_validators():
    """Groups are any columns; no column makes one row."""
    together = analysis.attestation_effectiveness(ROWS, by=())
    labeled = ROWS.with_columns(pool=pl.lit("a"))

    assert [(6, 5, 1, 3)] == together.select("duties", "included", "missed", "late").rows()
    assert ["a"] == analysis.attestation_effectiveness(labeled, by="pool")["pool"].to_list()


def test_the_last_epoch_may_be_given():
    """With *until*, nothing is looked up, and a duty not included by then is missed."""
    rows = analysis.attestation_effectiveness(ROWS, until=3)

    assert [1, 2, 3] == rows["validator_index"].to_list()
    assert [(1, 0.0, None)] == rows.filter(pl.col("validator_index") == 3).select(
        "missed", "effectiveness", "mean_distance"
    ).rows()


def test_effectiveness_matches_the_service(chain):
    """Its efficiency is 2 minus the effectiveness over its 100 epochs, for every validator."""
    latest = chain.meta["latest_epoch"]
    frame = chain.scan("attestations").filter(pl.col("epoch") < latest)
    ours = analysis.attestation_effectiveness(frame, until=latest - 1).collect()

    both = ours.join(
        chain.scan("attestation_efficiency").collect(), on="validator_index", how="full"
    )

    gap = (2 - pl.col("effectiveness") - pl.col("attestation_efficiency")).abs()
    assert both.height > 900
    assert both.select(gap.max()).item() < 1e-9


def test_faults_match_the_simulator(chain):
    """Missed duties are the simulator's own list, and reasons fit its blocks."""
    last = chain.meta["latest_epoch"] - 2
    faults = analysis.attestation_faults(
        chain.scan("attestations"), chain.scan("blocks"), until=last
    ).collect()

    happened = chain.scan("missed_attestation_events").collect()
    first = chain.scan("attestations").select(pl.min("epoch")).collect().item()
    missed = faults.filter(pl.col("fault") == "missed")
    keys = ["epoch", "validator_index"]
    inside = happened.filter(pl.col("epoch").is_between(first, last)).select(keys).sort(keys)
    assert inside.rows() == missed.select(keys).rows()
    assert {"own fault", "block missing"} == set(faults["reason"])
    assert {"own fault"} == set(missed["reason"])


def test_wrong_frames_are_explained():
    """The missing column is named."""
    with pytest.raises(UsageError, match="no column status"):
        analysis.attestation_faults(ROWS.drop("status"))
    with pytest.raises(UsageError, match=r"no column slot.*load_epoch_slots"):
        analysis.attestation_faults(ROWS, ROWS)
