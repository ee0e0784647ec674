"""The chain of frames: it follows from their times, so that no other chain is taken for mainnet."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from beaconframes import analysis, charts, frames
from beaconframes.analysis.engines import resolve_chain
from beaconframes.calendar import HOODI, MAINNET, Chain
from beaconframes.errors import UsageError

from ..support.engines import in_dask, in_duckdb, to_pandas
from . import test_problems as problems
from .test_attestations import ROWS as DUTIES
from .test_daily_income import stats
from .test_income import history

GENESIS = datetime(2026, 3, 1, tzinfo=UTC)
OWN = Chain("own", GENESIS)
FAST = Chain("fast", GENESIS, seconds_per_slot=6)


def at(chain, frame, unit="epoch"):
    """The frame with the times of a chain."""
    return frame.with_columns(time=chain.time_expr(unit, pl.col(unit)))


def rows(chain, *numbers, unit="epoch"):
    return at(chain, pl.DataFrame({unit: numbers}), unit)


def clock(chain):
    return chain.genesis, chain.seconds_per_slot, chain.slots_per_epoch


@pytest.mark.parametrize("chain", [MAINNET, HOODI])
@pytest.mark.parametrize(
    ("unit", "number"), [("slot", 5), ("epoch", 0), ("epoch", 70_000), ("day", 9)]
)
def test_one_row_shows_a_known_chain(chain, unit, number):
    assert chain is resolve_chain(None, (rows(chain, number, unit=unit), unit))


@pytest.mark.parametrize(("chain", "unit"), [(OWN, "epoch"), (OWN, "day"), (FAST, "epoch")])
def test_two_rows_show_any_chain(chain, unit):
    """Genesis and the length of an epoch follow from two rows."""
    found = resolve_chain(None, (rows(chain, 7, 7, 3, unit=unit), unit))

    assert clock(chain) == clock(found)


@pytest.mark.parametrize(
    ("kind", "chain"),
    [
        *((pl.DataFrame.lazy, MAINNET), (in_duckdb, OWN)),
        *(pytest.param(kind, MAINNET, marks=pytest.mark.more) for kind in (to_pandas, in_duckdb)),
        *(
            pytest.param(kind, OWN, marks=pytest.mark.more)
            for kind in (to_pandas, pl.DataFrame.lazy)
        ),
    ],
)
@pytest.mark.parametrize(
    "numbers", [[], [0], [5], [0, 1], [5, 5], [5, 5, 2], [-1, 5, 6], [None, 0, 7], [None, None, 3]]
)
def test_the_first_rows_show_the_same_chain_as_a_query(kind, chain, numbers):
    """Frames of polars are read without a query if their first two rows suffice."""
    frame = at(chain, pl.DataFrame({"epoch": numbers}, schema={"epoch": pl.Int64}))

    assert frames.read_starts(kind(frame), "epoch") == frames.read_starts(frame, "epoch")


def test_one_row_of_an_unknown_chain_has_the_epochs_of_mainnet():
    assert clock(OWN) == clock(resolve_chain(None, (rows(OWN, 7), "epoch")))


def test_epoch_zero_of_a_fast_chain_is_not_taken_for_mainnet():
    """A chain may have the genesis of mainnet and shorter epochs."""
    fast = Chain("fast", MAINNET.genesis, seconds_per_slot=6)

    assert clock(fast) == clock(resolve_chain(None, (rows(fast, 0, 0, 1), "epoch")))


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"epoch": [3, 4]}),
        rows(HOODI, 3).clear(),
        rows(HOODI, 3).with_columns(time=pl.lit(None, pl.Datetime("us", "UTC"))),
        rows(HOODI, 3).with_columns(time=pl.lit("noon")),
        None,
    ],
)
def test_frames_without_times_are_of_mainnet(frame):
    """Or of the chain that is given, or of the next frame with times."""
    assert MAINNET is resolve_chain(None, (frame, "epoch"))
    assert FAST is resolve_chain(FAST, (frame, "epoch"))
    assert HOODI is resolve_chain(None, (frame, "epoch"), (rows(HOODI, 3), "epoch"))


@pytest.mark.parametrize(
    "convert",
    [pl.DataFrame.lazy, to_pandas, in_duckdb, pytest.param(in_dask, marks=pytest.mark.more)],
)
@pytest.mark.parametrize("chain", [HOODI, FAST])
def test_engines(convert, chain):
    """Null and not-a-number are not times."""
    frame = rows(chain, None, 5, 5, 6)

    assert clock(chain) == clock(resolve_chain(None, (convert(frame), "epoch")))


@pytest.mark.parametrize(("chain", "count"), [(HOODI, 1), (FAST, 2)])
def test_a_lazy_frame_is_not_read_as_a_whole(chain, count, monkeypatch):
    """One row is enough for a known chain, two for any other."""
    read = []

    collect = frames.collect

    def collect_rows(lazy):
        table = collect(lazy)
        read.append(table.height)
        return table

    monkeypatch.setattr("beaconframes.frames.collect", collect_rows)
    resolve_chain(None, (in_duckdb(rows(chain, *range(3, 99))), "epoch"))

    assert [1] * count == read


def test_another_chain_is_refused():
    """The error names both chains."""
    frame = rows(HOODI, 3)

    with pytest.raises(UsageError, match=r"'mainnet' .* epoch 3 .* on hoodi with genesis at 2025"):
        resolve_chain("mainnet", (frame, "epoch"))
    with pytest.raises(UsageError, match=r"'fast' .* as on a chain with genesis at 2026-03-01"):
        resolve_chain(FAST, (rows(OWN, 3, 4), "epoch"))
    assert HOODI is resolve_chain("hoodi", (frame, "epoch"))
    assert OWN is resolve_chain(OWN, (rows(OWN, 3), "epoch"))


def test_the_shape_of_a_short_chain_must_be_given():
    """Epochs of 80 seconds have no 32 slots; the error shows the rows."""
    short = Chain("short", GENESIS, seconds_per_slot=5, slots_per_epoch=16)
    frame = rows(short, 3, 5)

    with pytest.raises(UsageError, match=r"fit no chain .* epoch 3 at 2026-03-01T00:04:00Z and"):
        resolve_chain(None, (frame, "epoch"))
    with pytest.raises(UsageError, match=r"not of chain 'own' .* epoch 5 starts at \S+Z\. Leave"):
        resolve_chain(OWN, (frame, "epoch"))
    assert short is resolve_chain(short, (frame, "epoch"))


def test_problems_have_the_times_of_the_frames():
    """Without income, proposals or daily statistics have the times."""
    income = at(
        OWN,
        history(*((1, e, problems.MISSED if e < 3 else problems.VOTED) for e in range(6))),
    )
    table = problems.validators({}, {"exit_epoch": 9})
    proposals = rows(OWN, 40, unit="slot").with_columns(
        epoch=1, status=pl.lit("missed"), proposer_index=1
    )
    daily = at(OWN, stats((0, {"missed_attestations": 3})), "day")

    for tables in (
        {"income": income, "balances": problems.stakes(income)},
        {"proposals": proposals},
        {"stats": daily},
    ):
        found = analysis.problems(table, **tables, epoch=5)
        since = dict(found.select("kind", "since").iter_rows())
        assert OWN.time_of("epoch", 9) == since["exiting"], tables
    assert GENESIS + timedelta(days=3) == since["missed votes"]


def test_the_sample_has_problems_in_2026(chain):
    """The simulated chain has the shape of mainnet and a genesis of its own."""
    mine = pl.col("validator_index") < 20
    income, balances = (
        chain.scan(name).filter(mine).collect() for name in ("income_history", "balance_history")
    )

    found = analysis.problems(
        chain.scan("validators").filter(mine).collect(), income, balances
    ).drop_nulls("first_epoch")

    times = dict(income.select("epoch", "time").iter_rows())
    assert found.height
    assert [times[epoch] for epoch in found["first_epoch"]] == found["since"].to_list()


def test_days_and_periods_are_those_of_the_frames():
    """A chain with slots of 6 seconds has 450 epochs in a day, and 256 in a period."""
    earned = {"sync_committee_reward_gwei": 9, "attestation_head_reward_gwei": 1}
    income = at(FAST, history((1, 449, earned), (1, 450, earned)))
    held = income.select("validator_index", "epoch", effective_balance_gwei=pl.lit(32 * 10**9))

    assert [0, 1] == analysis.income(income, day="beacon")["day"].to_list()
    assert [0, 1] == analysis.apr(income, held)["day"].to_list()
    assert [(1, 449)] == analysis.sync_income(income).select("period", "first_epoch").rows()
    with pytest.raises(UsageError, match="not of chain 'mainnet'"):
        analysis.apr(income, held, chain=MAINNET)


def test_losses_of_days_are_by_the_epochs_of_the_blocks():
    """Daily statistics do not show the length of an epoch; blocks do."""
    table = at(FAST, stats((1, {"end_balance_gwei": 32 * 10**9 + 900})), "day")
    blocks = at(FAST, pl.DataFrame({"slot": [32 * 3 * 450, 32 * 1801]}), "slot").select(
        "slot",
        "time",
        epoch=pl.col("slot") // 32,
        proposer_index=1,
        producer_reward_wei=pl.lit(7).cast(pl.Decimal(28, 0)),
        block_reward_wei=pl.lit(5).cast(pl.Decimal(28, 0)),
    )

    assert [7] == analysis.daily_income(table, blocks)["execution_income_wei"].to_list()


@pytest.mark.parametrize(
    ("slots_per_epoch", "match"),
    # Epochs of 16 slots of 6 seconds fill days of 86,400 seconds, as those of 32 slots do; 2057
    # epochs of 7 slots last 86,394 seconds.
    [(16, "of no chain with 32 slots in an epoch: its slot 16 is in epoch 1"), (7, "its day 3")],
)
@pytest.mark.parametrize("kind", [pl.DataFrame, in_duckdb])
def test_frames_that_contradict_the_epochs_of_mainnet_are_refused(slots_per_epoch, match, kind):
    """Slots are as on a chain with 32 in an epoch, but epochs or days are not."""
    short = Chain("short", GENESIS, seconds_per_slot=6, slots_per_epoch=slots_per_epoch)
    table = at(short, stats((1, {"end_balance_gwei": 32 * 10**9 + 900})), "day")
    first = 3 * short.epochs_per_day * slots_per_epoch
    blocks = at(short, pl.DataFrame({"slot": [1, 16, first]}), "slot").with_columns(
        epoch=pl.col("slot") // slots_per_epoch,
        block_number=pl.col("slot"),
        proposer_index=1,
        producer_reward_wei=pl.lit(7).cast(pl.Decimal(28, 0)),
        block_reward_wei=pl.lit(5).cast(pl.Decimal(28, 0)),
    )

    for analyse in (analysis.daily_income, analysis.daily_income_gaps):
        with pytest.raises(UsageError, match=match):
            analyse(table, kind(blocks))
    rows = analysis.daily_income(table, kind(blocks), chain=short)
    assert [7] == rows["execution_income_wei"].to_list()


def test_duties_without_times_are_of_mainnet():
    """*chain* then sets the slots per epoch."""
    without = DUTIES.drop("time", strict=False)

    assert (
        analysis.attestation_faults(without).rows()
        == analysis.attestation_faults(without, chain="hoodi").rows()
    )


def test_expected_income_is_by_the_epochs_of_the_chain():
    """A year of a fast chain has twice as many epochs, each with half of the income."""
    lines = {}
    for chain in (OWN, FAST):
        income = at(chain, history((1, 1, {}), (1, 2, {})))
        index = pl.DataFrame({"day": [0], "time": [GENESIS], "apr": [0.04], "cl_apr": [0.04]})
        index = index.with_columns(
            day_end=pl.lit(GENESIS + timedelta(days=1)).dt.cast_time_unit("us"), el_apr=0.0
        )
        chart = charts.income(income, every="epoch", yield_index=index, unit="gwei")
        lines[chain.name] = next(
            layer.y for layer in chart.layers if "ndex" in str(getattr(layer, "name", ""))
        )
    assert list(lines["own"]) == pytest.approx([2 * y for y in lines["fast"]])
