"""Analysis: exact sums of income, and who signed in sync committees."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.units import to_pandas

GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
REWARDS = [
    "attestation_head_reward_gwei",
    "attestation_source_reward_gwei",
    "attestation_target_reward_gwei",
    "proposer_attestation_inclusion_reward_gwei",
    "proposer_slashing_inclusion_reward_gwei",
    "proposer_sync_inclusion_reward_gwei",
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
]
PENALTIES = [
    "attestation_source_penalty_gwei",
    "attestation_target_penalty_gwei",
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
]
SCHEMA = (
    {"validator_index": pl.Int64, "epoch": pl.Int64, "time": pl.Datetime("us", "UTC")}
    | dict.fromkeys([*REWARDS, *PENALTIES, "proposals_missed"], pl.Int64)
    | {"tx_fee_reward_wei": pl.Decimal(28, 0)}
)


def income(*rows):
    """An income history from (validator, epoch, amounts): what is left out is 0."""
    zero = dict.fromkeys([*REWARDS, *PENALTIES, "proposals_missed"], 0)
    return pl.DataFrame(
        [
            {
                "validator_index": validator,
                "epoch": epoch,
                "time": GENESIS + timedelta(seconds=384 * epoch),
                **zero,
                "tx_fee_reward_wei": Decimal(0),
                **amounts,
            }
            for validator, epoch, amounts in rows
        ],
        schema=SCHEMA,
    )


def steady(first, last, **amounts):
    """An income history of validator 1 with the same amounts in every epoch."""
    amounts = amounts or {"attestation_head_reward_gwei": 1}
    return income(*((1, epoch, amounts) for epoch in range(first, last + 1)))


def test_net_income_is_rewards_minus_penalties_plus_fees():
    """Every column once, with its sign: powers of two tell which were added."""
    rewards = {name: 2**i for i, name in enumerate(REWARDS)}
    penalties = {name: 2 ** (20 + i) for i, name in enumerate(PENALTIES)}
    fee = {"tx_fee_reward_wei": Decimal(7)}

    (row,) = analysis.net_income(income((1, 5, rewards | penalties | fee))).iter_rows(named=True)

    assert 0b111 == row["attestation_reward_gwei"]
    assert 0b111000 == row["proposal_reward_gwei"]
    assert 2**6 == row["sync_committee_reward_gwei"]
    assert 2**7 == row["slashing_reward_gwei"]
    assert 0b11 << 20 == row["attestation_penalty_gwei"]
    assert 2**22 == row["finality_delay_penalty_gwei"]
    assert 2**23 == row["sync_committee_penalty_gwei"]
    assert 2**24 == row["slashing_penalty_gwei"]
    assert 0b11111111 - (0b11111 << 20) == row["consensus_income_gwei"]
    assert 7 == row["execution_income_wei"]
    assert (0b11111111 - (0b11111 << 20)) * 10**9 + 7 == row["net_income_wei"]


def test_missed_proposals_are_no_amount():
    """The count among the amounts is never added."""
    rows = analysis.net_income(income((1, 5, {"proposals_missed": 1_000_000})))

    assert [Decimal(0)] == rows["net_income_wei"].to_list()


@pytest.mark.parametrize("kind", [lambda frame: frame, to_pandas, pl.DataFrame.to_pandas])
def test_sums_are_exact(kind):
    """Wei far beyond 64 bits, and digits that no float has, through polars and pandas."""
    fees = [Decimal(2**70 + 1), Decimal(123_456_789_012_345_678_901), Decimal(1)]
    frame = income(
        *(
            (i, 5, {"tx_fee_reward_wei": fee, "slashing_reward_gwei": 2**53 + 1})
            for i, fee in enumerate(fees)
        )
    )

    rows = analysis.net_income(kind(frame))

    assert [sum(fees) + 3 * (2**53 + 1) * 10**9] == list(rows["net_income_wei"])


def test_types_say_the_units():
    """Gwei are Int64, wei Decimal(28, 0), times UTC; also when there are no rows."""
    schema = analysis.net_income(income()).schema

    assert schema == analysis.net_income(steady(0, 2)).schema
    assert pl.Datetime("us", "UTC") == schema["time"]
    for name, dtype in schema.items():
        if name.endswith("_gwei"):
            assert pl.Int64 == dtype
        if name.endswith("_wei"):
            assert pl.Decimal(28, 0) == dtype


def test_epochs_are_rows():
    """By epoch: one row per epoch over all validators, sorted."""
    one = {"attestation_head_reward_gwei": 1}
    frame = income((1, 7, one), (2, 7, one), (1, 5, one))

    rows = analysis.net_income(frame, every="epoch")

    assert [(5, 1), (7, 2)] == rows.select("first_epoch", "consensus_income_gwei").rows()
    assert [True, True] == rows["complete"].to_list()


def test_days_are_utc_days():
    """An epoch counts for the UTC day in which it begins, in whatever zone its time is told."""
    # Epoch 112 begins 43,008 s after 12:00:23, on the same day; epoch 113 on the next.
    frame = steady(111, 114).with_columns(pl.col("time").dt.convert_time_zone("Asia/Tokyo"))

    rows = analysis.net_income(frame, every="day")

    days = [datetime(2020, 12, day, tzinfo=UTC) for day in (1, 2)]
    assert [(days[0], 2, 112), (days[1], 2, 114)] == rows.select(
        "time", "epochs", "last_epoch"
    ).rows()


def test_a_day_is_complete_with_all_its_epochs():
    """225 epochs begin in a full day; days that are cut off or have holes are not complete."""
    frame = steady(10, 1000).filter(pl.col("epoch") != 500)

    rows = analysis.net_income(frame, every="day")

    assert [103, 225, 224, 225, 213] == rows["epochs"].to_list()
    assert [False, True, False, True, False] == rows["complete"].to_list()


def test_the_day_of_genesis_is_complete():
    """No epoch is missing from the first day: there were none before genesis."""
    assert [True, False] == analysis.net_income(steady(0, 200), every="day")["complete"].to_list()


def test_weeks_begin_on_monday():
    """The weeks of the calendar: 1 December 2020 was a Tuesday, with 113 epochs after genesis."""
    rows = analysis.net_income(steady(0, 113 + 5 * 225 + 1575 - 1), every="week")

    mondays = [datetime(2020, 11, 30, tzinfo=UTC), datetime(2020, 12, 7, tzinfo=UTC)]
    assert [(mondays[0], 1238, True), (mondays[1], 1575, True)] == rows.select(
        "time", "epochs", "complete"
    ).rows()


def test_months_have_their_own_lengths():
    """December has 31 days, less the half before genesis; January 31; February begins."""
    rows = analysis.net_income(steady(0, 225 * 62), every="month")

    assert [12, 1, 2] == rows["time"].dt.month().to_list()
    assert [30 * 225 + 113, 31 * 225] == rows["epochs"].to_list()[:2]
    assert [True, True, False] == rows["complete"].to_list()
    assert rows["epochs"].to_list() == rows["consensus_income_gwei"].to_list()


def test_validators_apart():
    """Per validator: one row per day and validator."""
    frame = income(
        (8, 5, {"attestation_head_reward_gwei": 3}),
        (8, 6, {"attestation_head_reward_gwei": 4}),
        (2, 5, {"slashing_penalty_gwei": 9}),
    )

    rows = analysis.net_income(frame, per_validator=True)

    assert [(2, -9), (8, 7)] == rows.select("validator_index", "consensus_income_gwei").rows()


def test_rows_without_an_amount_are_left_out():
    """Unknown income is not zero income."""
    frame = steady(5, 6).with_columns(
        slashing_reward_gwei=pl.when(pl.col("epoch") == 5).then(0),
    )

    assert [5] == analysis.net_income(frame, every="epoch")["first_epoch"].to_list()


def test_the_kind_of_frame_comes_back():
    """Lazy in, lazy out; pandas in, pandas out; the same values."""
    frame = steady(5, 400, tx_fee_reward_wei=Decimal(2**66))
    expected = analysis.net_income(frame)

    assert expected.equals(analysis.net_income(frame.lazy()).collect())
    assert expected.equals(
        pl.from_pandas(analysis.net_income(to_pandas(frame)), schema_overrides=expected.schema)
    )
    assert expected.equals(
        pl.from_arrow(analysis.net_income(frame.to_arrow()), schema_overrides=expected.schema)
    )


def test_wrong_frames_are_explained():
    """A missing column names itself and its loader; text where times belong is said too."""
    frame = steady(1, 2)
    with pytest.raises(UsageError, match=r"no column epoch.*bf\.load_income_history"):
        analysis.net_income(frame.drop("epoch"))
    with pytest.raises(UsageError, match="column time holds String"):
        analysis.net_income(frame.with_columns(pl.col("time").cast(pl.String)))
    with pytest.raises(UsageError, match="frame is needed, not dict"):
        analysis.net_income({"epoch": [1]})
    with pytest.raises(UsageError, match="every='year'"):
        analysis.net_income(frame, every="year")


BLOCKS = {
    "slot": pl.Int64,
    "epoch": pl.Int64,
    "time": pl.Datetime("us", "UTC"),
    "status": pl.String,
    "sync_aggregate_bits": pl.String,
    "sync_aggregate_participation": pl.Float64,
}
SEATS = ["period", "seat", "validator_index", "start_epoch", "end_epoch"]


def block(slot, signed=None, *, status="proposed", seats=512):
    """A block whose sync aggregate the given seats signed; without any if *signed* is None."""
    number = sum(1 << seat for seat in signed or ())
    return {
        "slot": slot,
        "epoch": slot // 32,
        "time": GENESIS + timedelta(seconds=12 * slot),
        "status": status,
        "sync_aggregate_bits": None
        if signed is None
        else "0x" + number.to_bytes(seats // 8, "little").hex(),
        "sync_aggregate_participation": 0.0 if signed is None else len(signed) / seats,
    }


def blocks(*rows):
    return pl.DataFrame(list(rows), schema=BLOCKS)


def committee(period, members):
    """A committee from {seat: validator}."""
    return pl.DataFrame(
        [
            (period, seat, validator, 256 * period, 256 * period + 255)
            for seat, validator in members.items()
        ],
        schema=SEATS,
        orient="row",
    )


def test_bit_order_is_little_endian_in_each_byte():
    """A case made by hand: byte 0 is 0x02 (seat 1), byte 1 is 0x80 (seat 15), byte 63 is 0x41."""
    text = "0x" + "02" + "80" + "00" * 61 + "41"
    frame = blocks(block(0)).with_columns(
        sync_aggregate_bits=pl.lit(text), status=pl.lit("proposed")
    )
    everybody = committee(0, {seat: 1000 + seat for seat in range(512)})

    rows = analysis.sync_members(frame, everybody)

    signed = rows.filter(pl.col("signed") == 1)["validator_index"].to_list()
    assert [1001, 1015, 1000 + 63 * 8, 1000 + 63 * 8 + 6] == signed


def test_members_are_counted_over_their_seats():
    """Duties are proposed blocks times seats; missed and orphaned blocks are no duty."""
    frame = blocks(
        block(0, [0, 1, 2]),
        block(1, [0, 2]),
        block(2, status="missed"),
        block(3, [1], status="orphaned"),
        block(4, [0]),
    )
    members = committee(0, {0: 7, 1: 8, 2: 7, 3: 9})

    rows = analysis.sync_members(frame, members)

    assert ["validator_index", "seats", "duties", "signed", "rate"] == rows.columns
    assert [(7, 2, 6, 5, 5 / 6), (8, 1, 3, 1, 1 / 3), (9, 1, 3, 0, 0.0)] == rows.rows()


def test_blocks_are_judged_by_the_committee_of_their_period():
    """The block of the first slot of a period belongs to the new committee."""
    border = 256 * 32
    frame = blocks(block(border - 1, [0]), block(border, [1]), block(border + 1, [1]))
    members = pl.concat([committee(0, {0: 5, 1: 6}), committee(1, {0: 6, 1: 5})])

    rows = analysis.sync_members(frame, members)

    assert [(5, 3, 3), (6, 3, 0)] == rows.select("validator_index", "duties", "signed").rows()


def test_members_without_blocks_are_no_rows():
    """A committee without a proposed block has no rates, but the columns are there."""
    rows = analysis.sync_members(blocks(block(0, status="missed")), committee(0, {0: 5}))

    assert (0, 5) == rows.shape


def test_participation_by_slot():
    """A slot without a block in the chain has a status and no participation."""
    frame = blocks(
        block(3, range(256)),
        block(1, status="missed"),
        block(2, range(512), status="orphaned"),
        block(0, range(512)),
        block(4, status="scheduled"),
    )

    rows = analysis.sync_participation(frame)

    assert [
        (0, "proposed", 1.0),
        (1, "missed", None),
        (2, "orphaned", None),
        (3, "proposed", 0.5),
        (4, "scheduled", None),
    ] == rows.select("slot", "status", "participation").rows()


def test_a_slot_is_one_row():
    """Of an orphaned and a proposed block of one slot the proposed one counts."""
    frame = blocks(block(3, [], status="orphaned"), block(3, range(512)))

    assert [1.0] == analysis.sync_participation(frame)["participation"].to_list()


def test_participation_by_epoch():
    """The mean of the proposed blocks, their lowest and highest, and how many there were."""
    frame = blocks(
        block(32, range(512)),
        block(33, range(128)),
        block(34, status="missed"),
        block(35, range(1), status="orphaned"),
        block(64, status="missed"),
    )

    rows = analysis.sync_participation(frame, every="epoch")

    assert [
        (1, GENESIS + timedelta(seconds=384), 0.625, 0.25, 1.0, 2, 2),
        (2, GENESIS + timedelta(seconds=768), None, None, None, 0, 1),
    ] == rows.rows()


def test_participation_of_some_seats():
    """With a committee, the same over its seats alone."""
    frame = blocks(block(0, [0, 5]), block(1, [0]), block(2, status="missed"))

    rows = analysis.sync_participation(frame, committee(0, {0: 1, 5: 2}))

    assert [1.0, 0.5, None] == rows["seats_participation"].to_list()
    assert [2 / 512, 1 / 512, None] == rows["participation"].to_list()


def test_participation_that_is_no_number_is_unknown():
    """Not-a-number is drawn as a hole, not as a value."""
    frame = blocks(block(0, [0])).with_columns(sync_aggregate_participation=pl.lit(float("nan")))

    assert [None] == analysis.sync_participation(frame)["participation"].to_list()


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, to_pandas, pl.DataFrame.to_pandas])
def test_sync_takes_other_frames(kind):
    """Lazy and pandas blocks and committees give the same rows, in their own kind."""
    frame, members = blocks(block(0, [0, 1]), block(1, status="missed")), committee(0, {0: 5})
    expected = analysis.sync_members(frame, members)

    rows = analysis.sync_members(kind(frame), kind(members))

    assert isinstance(rows, type(kind(frame)))
    assert expected.equals(
        rows.collect() if isinstance(rows, pl.LazyFrame) else pl.from_pandas(rows)
    )


def test_broken_bits_are_explained():
    """Bits of another length, of no hex, or fewer than seats: each says where."""
    members = committee(0, {0: 5, 100: 6})
    with pytest.raises(UsageError, match="bits of slot 1 has 10 characters"):
        analysis.sync_members(blocks(block(0, [0]), block(1, [0], seats=32)), members)
    with pytest.raises(UsageError, match="not hex"):
        analysis.sync_members(
            blocks(block(0, [0])).with_columns(sync_aggregate_bits=pl.lit("0xzz")), members
        )
    with pytest.raises(UsageError, match="seat 100 of period 0 is not among the 32 bits"):
        analysis.sync_members(blocks(block(0, [0], seats=32)), members)
