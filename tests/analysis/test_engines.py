"""Every public function of analysis returns the same on every engine."""

from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import narwhals.stable.v2 as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beaconframes import analysis
from beaconframes.analysis import engines
from beaconframes.errors import UsageError
from beaconframes.frames import to_polars

from ..support.cases import every
from ..support.engines import (
    KINDS,
    assert_equal,
    each_engine,
    in_duckdb,
    in_zone,
    make,
    make_categories,
    make_unsigned,
    shrink,
)
from . import test_apr as rates
from . import test_attestation_losses as losses
from . import test_attestations as attestations
from . import test_average_comparison as average
from . import test_completeness as completeness
from . import test_daily_costs as costs
from . import test_daily_income as daily
from . import test_ledger as ledger
from . import test_problems as problems
from . import test_proposals as proposals
from . import test_reconciliation as reconcile
from . import test_sync_duties as sync
from .test_income import history, varied

SHORT = {"chain": rates.SHORT}
POOLS = pl.col("validator_index").replace_strict({1: None}, default="a")
LABELED = {"operator": POOLS, "big": pl.col("validator_index") > 1}
# Both clock changes of a year in Berlin.
INCOME = varied(range(3), [*range(26_200, 26_350, 3), *range(73_000, 73_200, 31)])
LIVES = pl.DataFrame(
    {
        "validator_index": [1, 2, 4],
        "activation_epoch": [0, 1, None],
        "exit_epoch": [None, 99, None],
        "pool": ["a", "b", "b"],
    },
    schema_overrides={"activation_epoch": pl.Int64},
)
RATES = {"income": rates.EARNED_SHORT, "balances": rates.HELD}
LUCK = {"proposals": proposals.BLOCKS, "balances": proposals.HELD, "epochs": proposals.EPOCHS}
SIGNED = {"blocks": sync.BLOCKS, "committees": sync.COMMITTEES}
ATTESTED = {"attestations": attestations.ROWS, "blocks": attestations.BLOCKS}
# All validators have rows on day 0, which begins and ends with an epoch.
DAYS = history(*((1, epoch, {}) for epoch in (0, 3, 6)))["time"]
YIELDS = rates.INDEX.with_columns(time=DAYS.gather([0, 1]), day_end=DAYS.gather([1, 2]))
BLOCKS = proposals.BLOCKS.filter(pl.col("slot") < 64).with_columns(
    sync_aggregate_bits=pl.lit("0x03"), sync_aggregate_participation=0.25
)
EVERYTHING = {
    "validators": LIVES,
    **RATES,
    "attestations": attestations.ROWS,
    "proposals": proposals.BLOCKS,
    "slots": BLOCKS,
    "committees": sync.COMMITTEES.with_columns(pl.col("validator_index") - 10),
    "epochs": proposals.EPOCHS,
    "index": rates.INDEX,
}

# Two days: validator 1 missed votes on one, 2 proposed a block.
STATS = daily.stats(
    (1, {"end_balance_gwei": 32 * 10**9 + 900, "missed_attestations": 3, "missed_sync": 1}),
    (1, {"day": 4, "end_balance_gwei": 32 * 10**9 + 990}),
    (2, {"end_balance_gwei": 33 * 10**9, "withdrawals_amount_gwei": 50, "proposed_blocks": 1}),
    (4, {"day": 4, "end_balance_gwei": 32 * 10**9 + 1000}),
).with_columns(pl.col("withdrawals_amount_gwei").fill_null(0))
PRODUCED = pl.DataFrame(
    {
        "proposer_index": [2, 2],
        "epoch": [700, 701],
        "producer_reward_wei": [5, 6],
        "block_reward_wei": [5, 4],
    },
    schema_overrides=dict.fromkeys(["producer_reward_wei", "block_reward_wei"], pl.Decimal(28, 0)),
)
GROUPED = pl.DataFrame(
    {
        "pool": ["a", "a", "b", "b", None],
        "apr_on_effective": [0.031, 0.029, 0.034, None, 0.02],
        "proposed": [1, 0, 2, 3, 1],
        "drawn": [1, 2, 2, 3, 1],
    }
)
MISSES = history(
    *((1, e, problems.MISSED if e in (3, 4, 5, 9) else problems.VOTED) for e in range(12))
)
SEATS = history(
    (1, 5, {"sync_committee_reward_gwei": 900, "sync_committee_penalty_gwei": 100}),
    (1, 300, {"sync_committee_reward_gwei": 500}),
    (2, 5, {}),
)

AT_NIGHT = rates.HELD_AT.with_columns(
    balance_gwei=pl.col("effective_balance_gwei") + pl.col("validator_index")
)
UPCOMING = LIVES.with_columns(withdrawable_epoch=pl.col("exit_epoch") + 256)
NETWORK = pl.DataFrame(
    {
        "attestations_assigned": [1000],
        "attestations_included": [990],
        "valuable_correct_source": [985],
        "valuable_correct_target": [970],
        "valuable_correct_head": [950],
    }
)
FOUND = analysis.problems(problems.validators({}, {}), MISSES, problems.stakes(MISSES))
MACHINES = pl.DataFrame({"validator_index": [0, 1], "group": ["a", "b"]})
TOTALS = pl.DataFrame(
    {"day": [3, 4], "effective_balances_sum_wei": [10**24, 10**24]},
    schema_overrides={"effective_balances_sum_wei": pl.Decimal(28, 0)},
)
MADE = proposals.BLOCKS.drop_nulls().filter(pl.col("status") == "proposed").unique("slot")
MADE = MADE.with_columns(graffiti_text=pl.lit("a")).sort("slot")
PAID = MADE.with_columns(
    producer_reward_wei=pl.col("slot").cast(pl.Decimal(28, 0)), relay_tag=pl.lit("one")
)

BOOK = analysis.ledger(ledger.EARNED, ledger.PAID, ledger.PRICES, tz="Europe/Berlin", price="eur")

# Each function: the frame that determines the result, all frames, and arguments.
CASES = {
    "compare_with_average": (
        "validators",
        {
            "validators": average.ACTIVE,
            "index": average.INDEX,
            # Without a null, numbers of pandas stay whole.
            "problems": analysis.problems(average.ACTIVE, **average.BY_EPOCH).drop_nulls(
                "cost_gwei"
            ),
            "proposals": average.PROPOSALS,
            **average.BY_EPOCH,
            "blocks": average.BLOCKS,
        },
        {"chain": "mainnet"},
    ),
    "apr": ("income", {**RATES, "index": rates.INDEX}, SHORT),
    "apr of all": (
        "income",
        {**RATES, "index": rates.INDEX, "validators": LIVES},
        {"every": "all", "by": "validator_index", **SHORT},
    ),
    "attestation_effectiveness": ("attestations", ATTESTED, {}),
    "attestation_faults": ("attestations", ATTESTED, {}),
    "attestation_losses": (
        "income",
        {"income": losses.INCOME, "balances": losses.BALANCES},
        {},
    ),
    "attestation_rates": ("income", {"income": losses.INCOME}, {"by": "validator_index"}),
    "compare_groups": (
        "frame",
        {"frame": GROUPED},
        {"by": "pool", "values": "apr_on_effective", "shares": {"luck": ("proposed", "drawn")}},
    ),
    "compare_with_network": (
        "rates",
        {"rates": analysis.attestation_rates(losses.INCOME), "network": NETWORK},
        {},
    ),
    "daily_balances": ("balances", {"balances": AT_NIGHT}, {"tz": "Europe/Berlin"}),
    "daily_income": ("stats", {"stats": STATS, "blocks": PRODUCED}, {}),
    "daily_income_gaps": ("stats", {"stats": STATS, "blocks": PRODUCED}, {}),
    "daily_luck": (
        "stats",
        {"stats": STATS, "proposals": proposals.BLOCKS, "index": TOTALS, "validators": LIVES},
        {},
    ),
    "daily_sync": ("stats", {"stats": STATS}, {}),
    "total_balances": ("index", {"index": TOTALS}, {}),
    "ledger_totals": ("ledger", {"ledger": BOOK}, {"by": "validator_index"}),
    "problem_totals": ("problems", {"problems": FOUND}, {}),
    "incidents": ("problems", {"problems": FOUND, "groups": MACHINES}, {}),
    "proposal_outcomes": ("proposals", {"proposals": MADE, "blocks": PAID}, {}),
    "relay_payments": ("blocks", {"blocks": PAID}, {}),
    "reconciliation_totals": (
        "changes",
        {"changes": analysis.reconcile(reconcile.HELD, reconcile.EARNED)},
        {},
    ),
    "upcoming_totals": (
        "upcoming",
        {"upcoming": analysis.upcoming_duties(UPCOMING, epoch=50)},
        {"tz": "Europe/Berlin"},
    ),
    "upcoming_duties": ("validators", {"validators": UPCOMING}, {"epoch": 50}),
    "daily_losses": ("stats", {"stats": STATS, "index": costs.days_of_the_network()}, {}),
    "daily_rates": ("daily", {"daily": analysis.daily_income(STATS, PRODUCED)}, {}),
    "daily_votes": ("stats", {"stats": STATS, "validators": LIVES}, {}),
    "problems": (
        "validators",
        {
            "validators": problems.validators({}, {"slashed": True}),
            "income": MISSES,
            "balances": problems.stakes(MISSES),
        },
        {},
    ),
    "sync_income": ("income", {"income": SEATS}, {}),
    "completeness": (
        "frame",
        {"frame": completeness.ROWS, "validators": completeness.LIVES},
        {"since": 10, "until": 13, "finalized": 12},
    ),
    "income by week": (
        "frame",
        {"frame": INCOME},
        {"every": "week", "by": "validator_index", "tz": "Europe/Berlin"},
    ),
    "income by beacon day": (
        "frame",
        {"frame": INCOME.with_columns(**LABELED)},
        {"day": "beacon", "by": ["operator", "big"]},
    ),
    "income of all": ("frame", {"frame": INCOME}, {"every": "all"}),
    "ledger": (
        "income",
        {"income": ledger.EARNED, "withdrawals": ledger.PAID, "prices": ledger.PRICES},
        {"tz": "Europe/Berlin", "price": "eur"},
    ),
    "yearly_totals": ("ledger", {"ledger": BOOK}, {"starts": "12-02"}),
    "tax_rows": ("ledger", {"ledger": BOOK}, {"tool": "koinly", "price": "eur"}),
    "missed_proposals": (
        "proposals",
        {"proposals": proposals.BLOCKS, "income": proposals.EARNED},
        {},
    ),
    "missed_proposals of days": (
        "proposals",
        {
            "proposals": costs.LOST,
            "stats": costs.MADE,
            "blocks": costs.RECEIVED,
            "index": costs.days_of_the_network(),
        },
        {},
    ),
    "income with coverage": (
        "frame",
        {"frame": INCOME},
        {"every": "week", "by": "validator_index", "tz": "Europe/Berlin", "coverage": True},
    ),
    "income by epoch": ("frame", {"frame": INCOME}, {"every": "epoch"}),
    "own_yield": (
        "income",
        {"income": rates.EARNED, "balances": rates.HELD_AT, "days": YIELDS},
        {},
    ),
    "performance": ("income", EVERYTHING, {"by": "pool", "until": 3, **SHORT}),
    "proposal_luck": (
        "balances",
        {**LUCK, "validators": proposals.LIVES},
        {},
    ),
    "sync_luck": (
        "balances",
        {
            "committees": proposals.COMMITTEES,
            "balances": proposals.HELD,
            "epochs": proposals.EPOCHS,
            "validators": proposals.LIVES,
        },
        {"chain": proposals.SMALL},
    ),
    "reconcile": (
        "balances",
        {
            "balances": reconcile.HELD,
            "income": reconcile.EARNED,
            "deposits": reconcile.DEPOSITS,
            "withdrawals": reconcile.WITHDRAWALS,
            "consolidations": reconcile.MOVES,
            "validators": reconcile.KEYS,
        },
        {},
    ),
    "sync_against_committee": ("blocks", SIGNED, {"validators": [10, 17]}),
    "sync_duties": ("blocks", SIGNED, {"validators": [10, 17]}),
    "sync_members": ("blocks", SIGNED, {}),
    "sync_participation": ("blocks", SIGNED, {}),
    "sync_participation by epoch": ("blocks", SIGNED, {"every": "epoch"}),
}
# A function may have its case in the file of its tests.
for path in sorted(Path(__file__).parent.glob("test_*.py")):
    if "\nCASE = " in path.read_text(encoding="utf-8"):
        CASES[path.stem.removeprefix("test_")] = import_module(f".{path.stem}", __package__).CASE


def call(case, frames):
    """Call the function of a case with *frames* in place of its own."""
    return getattr(analysis, case.split()[0])(**frames, **CASES[case][2])


# Every function runs once on every engine; Dask plans each case for about a second, so most of its
# cases are marked `more`. Frames in memory all move into polars first: one case a kind is enough.
DASK = {"ledger"}
SLOW_IN_DASK = {
    "attestation_losses",
    "problems",
    "apr of all",
    "income by beacon day",
    "income of all",
    "income with coverage",
    "income by epoch",
    "own_yield",
    "performance",
}
# These move all rows into polars.
MOVED = {
    "attestation_losses",
    "compare_groups",
    "compare_with_average",
    "compare_with_network",
    "daily_balances",
    "daily_income",
    "daily_income_gaps",
    "daily_losses",
    "daily_luck",
    "daily_rates",
    "daily_sync",
    "daily_votes",
    "incidents",
    "ledger_totals",
    "problem_totals",
    "problems",
    "proposal_outcomes",
    "reconciliation_totals",
    "relay_payments",
    "sync_income",
    "total_balances",
    "upcoming_duties",
    "upcoming_totals",
}
IN_MEMORY = {
    "pandas-numpy": {"apr", "daily_votes"},
    "pandas-arrow": {"ledger", *MOVED},
    "pandas-nullable": {"income of all"},
}


def choose_marks(case, kind):
    """The marks of a case: none where its code path is distinct."""
    if kind == "pyspark" or (kind == "dask" and case in SLOW_IN_DASK):
        return [pytest.mark.long]
    first = next(other for other in CASES if other.split()[0] == case.split()[0])
    default = {
        # Each third, as those in DuckDB are lazy too.
        "polars-lazy": case == first and case not in MOVED and [*CASES].index(case) % 3 == 0,
        # `performance` calls functions that have cases of their own.
        "duckdb": case == first != "performance" and case not in MOVED,
        "dask": case in DASK,
        **{name: case in cases for name, cases in IN_MEMORY.items()},
    }
    return [] if default[kind] else [pytest.mark.more]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(case, kind, marks=choose_marks(case, kind))
        for case in CASES
        for kind in [*KINDS, "pyspark"]
        if kind != "polars"
    ],
)
def test_every_engine_returns_the_same(case, kind):
    """Money is equal to the last digit, ratios to twelve, in the engine's own frame."""
    like, frames, _ = CASES[case]
    made = {name: make(kind, frame) for name, frame in frames.items()}

    result = call(case, made)

    expected = call(case, frames)
    assert expected.height > 0
    assert_equal(expected, result, like=made[like])


@pytest.mark.more
@pytest.mark.parametrize("case", CASES)
def test_the_streaming_engine_returns_the_same(case):
    """F12: polars computes in streaming what a program sets up so, inside of functions too."""
    like, frames, _ = CASES[case]
    expected = call(case, frames)
    made = {name: frame.lazy() for name, frame in frames.items()}

    with pl.Config(engine_affinity="streaming"):
        result = call(case, made).collect()

    assert_equal(expected, result, like=frames[like])


# Functions that compute in Dask, each with other operations; the others move rows into polars.
ON_A_CLUSTER = ("income by week", "income by epoch", "attestation_rates", "sync_participation")


@pytest.mark.long
def test_a_cluster_returns_the_same():
    """F12: the tasks of Dask also run in the processes of a cluster, to which they are sent."""
    distributed = pytest.importorskip("distributed")
    import dask.base

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for case in ON_A_CLUSTER:
            like, frames, _ = CASES[case]
            made = {name: make("dask", frame) for name, frame in frames.items()}

            result = call(case, made)

            assert dask.base.get_scheduler() == client.get
            assert_equal(call(case, frames), result, like=made[like])


def test_every_function_has_a_case():
    """Every function of analysis is called on the engines."""
    functions = {name for name in analysis.__all__ if callable(getattr(analysis, name))}

    assert functions == {case.split()[0] for case in CASES}


@pytest.mark.parametrize(
    "kind",
    [
        *("polars-lazy", "duckdb"),
        *(pytest.param(kind, marks=pytest.mark.more) for kind in ("dask", "pandas-numpy")),
        *(pytest.param(kind, marks=pytest.mark.more) for kind in ("pandas-arrow", "polars")),
        pytest.param("pyspark", marks=pytest.mark.long),
    ],
)
def test_frames_of_several_kinds(kind):
    """The engine of the first frame computes; the other frames are moved there."""
    like, frames, _ = CASES["reconcile"]
    made = frames | {like: make(kind, frames[like])}

    assert_equal(call("reconcile", frames), call("reconcile", made), like=made[like])


@pytest.mark.more
@pytest.mark.parametrize("kind", ["polars", "pandas-numpy", "pandas-arrow", "duckdb", "dask"])
def test_unknown_income_is_left_out(kind):
    """A row with an amount missing is not added as zero."""
    frame = varied([1], [5, 6]).with_columns(
        slashing_reward_gwei=pl.when(pl.col("epoch") == 5).then("slashing_reward_gwei")
    )
    if kind == "pandas-numpy":  # which turns integers beside a null into floats
        with pytest.raises(UsageError, match="slashing_reward_gwei holds Float64"):
            analysis.income(make(kind, frame))
        return

    result = to_polars(analysis.income(make(kind, frame)))

    assert [(1, 5, 5)] == result.select("validator_epochs", "first_epoch", "last_epoch").rows()


MOST = 2**63 - 1
HEAD, SOURCE = "attestation_head_reward_gwei", "attestation_source_reward_gwei"
KINDS_OF_REWARD = [
    HEAD,
    "proposer_sync_inclusion_reward_gwei",
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
]
TOO_MUCH = {
    "a sum of rows": [{"slashing_reward_gwei": 2**62}] * 3,
    "four rows make zero": [{"slashing_reward_gwei": 2**62}] * 4,
    "a sum within a row": [{HEAD: MOST, SOURCE: MOST}],
    "four kinds of reward": [dict.fromkeys(KINDS_OF_REWARD, 2**62 - 1)],
    "a count": [{"proposals_missed": MOST}] * 3,
    "wei": [{"tx_fee_reward_wei": Decimal(10**28 - 1)}] * 2,
    "gwei and wei": [{"slashing_reward_gwei": 2**58, "tx_fee_reward_wei": Decimal(10**28 - 1)}],
}


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(
            kind,
            case,
            marks=[] if kind in {"polars", "duckdb"} or case == "wei" else [pytest.mark.more],
        )
        for kind in KINDS
        for case in TOO_MUCH
    ],
)
def test_overflow_is_an_error(kind, case):
    """V08: no engine wraps without an error: within a row, between rows or in the total."""
    frame = history(*((1, epoch, amounts) for epoch, amounts in enumerate(TOO_MUCH[case])))

    with pytest.raises(Exception, match=r"(?i)more than a chain|out of range|overflow|conver"):
        to_polars(analysis.income(make(kind, frame)))


@pytest.mark.more
@each_engine
def test_large_sums_are_exact(kind):
    """V08: to the last gwei and wei, where floats have lost eight digits."""
    amounts = {HEAD: 2**57 + 1, "tx_fee_reward_wei": Decimal(4 * 10**27 + 1)}
    frame = history((1, 1, amounts), (1, 2, amounts))

    result = to_polars(analysis.income(make(kind, frame)))

    assert [(2**58 + 2, Decimal(8 * 10**27 + 2))] == result.select(
        "consensus_income_gwei", "execution_income_wei"
    ).rows()
    assert [(2**58 + 2) * 10**9 + 8 * 10**27 + 2] == [int(x) for x in result["net_income_wei"]]


UNSEEN = {
    "reconcile": {HEAD: MOST, SOURCE: MOST},
    "performance": {HEAD: MOST, SOURCE: MOST},
    "missed_proposals": dict.fromkeys(
        ["proposer_sync_inclusion_reward_gwei", "proposer_slashing_inclusion_reward_gwei"], MOST
    ),
    "apr": {HEAD: MOST, SOURCE: MOST},
    "ledger": {HEAD: MOST, SOURCE: MOST},
    "income with coverage": {HEAD: MOST, SOURCE: MOST},
}


@pytest.mark.parametrize("case", UNSEEN)
def test_overflow_within_a_row_is_refused(case):
    """Twice 2^63 - 1 is -2 in 64 bits; no function uses it."""
    like = CASES[case][0] if case.startswith("income") else "income"
    frames = dict(CASES[case][1])
    options = CASES[case][2]
    frames[like] = frames[like].with_columns(
        pl.lit(amount).cast(pl.Int64).alias(column) for column, amount in UNSEEN[case].items()
    )

    with pytest.raises(UsageError, match="more than a chain has"):
        getattr(analysis, case.split()[0])(**frames, **options)


@pytest.mark.more
@pytest.mark.parametrize("kind", ["polars", "polars-lazy", "pandas-arrow", "dask"])
def test_negative_amounts_are_refused(kind):
    """Rewards and penalties are positive amounts."""
    frame = history((1, 1, {"attestation_source_penalty_gwei": -5}))

    with pytest.raises(Exception, match="amounts are negative"):
        to_polars(analysis.income(make(kind, frame)))


@pytest.mark.more
def test_an_epoch_in_two_partitions_counts_once():
    """Dask counts by partition; two partitions have the same epoch of two validators."""
    frame = varied([1, 2], range(100, 110)).sort("validator_index", "epoch")

    result = to_polars(analysis.income(make("dask", frame), coverage=True))

    assert [(10, 100, 109)] == result.select("epochs", "first_epoch", "last_epoch").rows()


def test_slots_in_two_partitions_count_once():
    """Two validators in two partitions share the slots of an epoch."""
    held = proposals.HELD.sort("validator_index", "epoch")
    options = {"epochs": proposals.EPOCHS, "by": []}

    expected = analysis.proposal_luck(proposals.BLOCKS, held, **options)

    result = analysis.proposal_luck(proposals.BLOCKS, make("dask", held), **options)
    assert expected["slots"].item() == held["epoch"].n_unique() * 32
    assert_equal(expected, result)


@pytest.mark.parametrize("case", {case.split()[0]: case for case in reversed(CASES)}.values())
def test_other_engines_are_refused(case, monkeypatch):
    """Other lazy frames of narwhals are refused by name, and nothing is computed."""
    like, frames, _ = CASES[case]
    theirs = in_duckdb(frames[like])
    take = engines.select_columns

    def in_ibis(frame, columns, *, loader):
        if frame is theirs:
            return SimpleNamespace(implementation=nw.Implementation.IBIS)
        return take(frame, columns, loader=loader)

    monkeypatch.setattr(engines, "select_columns", in_ibis)

    with pytest.raises(UsageError, match="frames of ibis are not supported") as error:
        call(case, frames | {like: theirs})

    assert "collect this one first" in str(error.value)


@pytest.mark.more
@each_engine
def test_empty_frames_are_valid(kind):
    """An empty history gives no rows, with the columns of any other."""
    expected = analysis.income(varied([1], [1])).clear()

    assert_equal(expected, analysis.income(make(kind, varied([1], [1]).clear())))


def test_the_zone_of_a_connection_changes_nothing():
    """DuckDB shows instants in the zone of the session; days are those of *tz*."""
    frame = varied([1], range(100, 600))
    with in_zone("Asia/Tokyo"):
        assert_equal(analysis.income(frame), analysis.income(in_duckdb(frame)))
        assert_equal(
            analysis.income(frame, every="week", tz="Europe/Berlin"),
            analysis.income(in_duckdb(frame), every="week", tz="Europe/Berlin"),
        )


def test_times_without_a_zone_are_refused_in_duckdb():
    """Without a zone, the instants are ambiguous."""
    frame = varied([1], [1]).with_columns(pl.col("time").dt.replace_time_zone(None))

    with pytest.raises(UsageError, match="the column time has no time zone"):
        analysis.income(in_duckdb(frame))


def check_wide_sums(kind, dtype):
    """Rewards of an epoch fit into 32 bits, their sum does not; a difference may be negative."""
    rewards, penalties = "attestation_head_reward_gwei", "slashing_penalty_gwei"
    rows = history(*((1, epoch, {rewards: 2 * 10**9, penalties: 1}) for epoch in range(9)))
    loss = history(*((2, epoch, {rewards: 1, penalties: 2 * 10**9}) for epoch in range(9)))
    frame = pl.concat([rows, loss]).with_columns(
        pl.col(rewards, penalties, "epoch", "validator_index").cast(dtype)
    )

    found = to_polars(analysis.income(make(kind, frame), by=["validator_index"]))

    assert [18 * 10**9 - 9, 9 - 18 * 10**9] == found.sort("validator_index")[
        "consensus_income_gwei"
    ].to_list()


@pytest.mark.more
@each_engine
def test_amounts_of_32_bits_do_not_wrap(kind):
    check_wide_sums(kind, pl.Int32)


@pytest.mark.parametrize("kind", ["polars", "pandas-numpy", "duckdb"])
@pytest.mark.parametrize("dtype", [pl.UInt32, pl.UInt64], ids=str)
def test_unsigned_amounts_do_not_wrap(kind, dtype):
    """Other tools write epochs and indices as UInt64; PySpark has no such type."""
    check_wide_sums(kind, dtype)


@pytest.mark.parametrize(
    "change",
    [shrink, *(pytest.param(f, marks=pytest.mark.more) for f in (make_unsigned, make_categories))],
)
@pytest.mark.parametrize("case", every(3, CASES))
def test_columns_of_other_types_give_the_same(case, change):
    """Users make frames smaller, and other tools write UInt64: no sum or difference may wrap."""
    _, frames, _ = CASES[case]

    result = call(case, {name: change(frame) for name, frame in frames.items()})

    expected = call(case, frames)
    same = [pl.col(name).cast(kind) for name, kind in expected.schema.items()]
    assert_frame_equal(expected, result.select(same))


def test_an_amount_that_int64_does_not_have_is_an_error():
    """Only numbers that are no amounts are clipped."""
    frame = history((1, 0, {"slashing_reward_gwei": 1})).with_columns(
        slashing_reward_gwei=pl.lit(2**63, pl.UInt64)
    )

    with pytest.raises(UsageError, match="more than a chain has"):
        analysis.income(frame)


@pytest.mark.parametrize("case", CASES)
def test_other_objects_than_frames_are_refused(case):
    """In place of each frame of each function, also of optional ones."""
    frames = CASES[case][1]
    for name in frames:
        with pytest.raises(UsageError, match=r"a frame, not list|consolidations are none"):
            call(case, {**frames, name: [1]})
