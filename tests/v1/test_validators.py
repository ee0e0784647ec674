"""Loaders of what is known of validators, against the local explorer over a real socket.

What is expected is read from the dataset's own files with polars alone.
"""

from __future__ import annotations

import re
from datetime import timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server import Server

COUNTS = [(1, 1), (100, 1), (101, 2), (201, 3)]
BY_VALIDATOR = {
    "execution_performance": bf.load_execution_performance,
    "performance": bf.load_performance,
    "attestation_efficiency": bf.load_attestation_efficiency,
    "bls_changes": bf.load_bls_changes,
    "pool_validators": bf.load_pool_validators,
}
MAY_HAVE_NONE = {"bls_changes", "pool_validators"}
LOADERS = {
    **BY_VALIDATOR,
    "deposits": bf.load_deposits,
    "proposals": bf.load_proposals,
    "attestations": bf.load_attestations,
    "validator_withdrawals": bf.load_validator_withdrawals,
    "validator_stats": bf.load_validator_stats,
    "proposal_luck": bf.load_proposal_luck,
}

pytestmark = pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")


def below(count):
    return pl.col("validator_index") < count


def between(first, last, unit="epoch"):
    return pl.col(unit).is_between(first, last)


def rows(chain, table, *conditions, by=("validator_index",)):
    """Return the rows of a table of the dataset that meet the conditions, in the order of *by*."""
    return chain.scan(table).filter(*conditions).sort(by, nulls_last=True).collect()


def keys(chain, count):
    """Return the public keys of the first validators."""
    known = chain.scan("validators").filter(below(count)).sort("validator_index").collect()
    return known["pubkey"].to_list()


@pytest.mark.parametrize(("count", "requests"), COUNTS)
@pytest.mark.parametrize("name", BY_VALIDATOR)
def test_validators_in_batches_of_a_hundred(chain, explorer, name, count, requests):
    """Every row of the dataset with the fewest requests; the same rows by public key."""
    order = ("validator_index", "slot") if name == "bls_changes" else ("validator_index",)
    expected = rows(chain, name, below(count), by=order)

    found = BY_VALIDATOR[name](range(count))

    missing = name not in MAY_HAVE_NONE and expected["validator_index"].n_unique() < count
    # Validators without rows are requested once more.
    assert requests + missing == explorer.requests
    assert_frame_equal(expected, found)
    assert count == 1 or expected.height > 0
    if count <= 100:
        assert_frame_equal(expected, BY_VALIDATOR[name](keys(chain, count)))
        assert 1 + (2 if count == 100 else 1) == explorer.requests - 2 * missing


@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_deposits_are_found_by_public_key(chain, explorer, count, requests):
    """Rows have no index; subjects by index and by public key return the same rows."""
    known = keys(chain, count)
    expected = rows(
        chain,
        "deposits",
        pl.col("pubkey").is_in(known),
        by=("block_number", "tx_index", "merkletree_index"),
    )

    assert_frame_equal(expected, bf.load_deposits(range(count)))
    assert requests == explorer.requests
    mixed = [*range(count // 2), *known[count // 2 :]]
    assert_frame_equal(expected, bf.load_deposits(mixed))
    assert expected.height >= count


def test_deposits_of_a_key_without_a_validator(chain, explorer):
    """A public key with deposits but without a validator loads too."""
    known = chain.scan("validators").select("pubkey").collect()["pubkey"]
    others = rows(chain, "deposits", ~pl.col("pubkey").is_in(known.implode()), by="pubkey")
    subjects = [*others["pubkey"].head(1), "0x" + "ab" * 48]

    found = bf.load_deposits(subjects)

    assert 1 == explorer.requests
    assert 2 == len(subjects)
    assert_frame_equal(others.filter(pl.col("pubkey").is_in(subjects)), found)


@pytest.mark.more
@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_proposals_of_the_last_101_epochs(chain, explorer, count, requests):
    """The default range is that of the service: 101 epochs, not 100."""
    latest = chain.meta["latest_epoch"]
    expected = rows(
        chain,
        "blocks",
        pl.col("proposer_index") < count,
        between(latest - 100, latest),
        by=("slot", "block_root"),
    )

    found = bf.load_proposals(range(count))

    assert requests == explorer.requests
    assert_frame_equal(without_counts(expected), found)
    if count > 100:
        assert latest - 100 == found["epoch"].min()
        assert {"proposed", "missed"} <= set(found["status"])


def without_counts(blocks):
    """Return blocks without the counts that proposals do not have."""
    none = pl.lit(None, pl.Int64)
    return blocks.with_columns(withdrawals_count=none, votes=none)


@pytest.mark.parametrize(
    ("first", "last", "requests"),
    [(0, 0, 1), (0, 100, 1), (0, 101, 2), (50, 352, 3), (100, 402, 3), (369, 469, 1), (0, 469, 5)],
)
def test_proposals_over_windows(chain, explorer, first, last, requests):
    """P17: three windows return every epoch of the range once, and no other."""
    subjects = [3, 500, *range(200, 260)]
    expected = rows(
        chain,
        "blocks",
        pl.col("proposer_index").is_in(subjects),
        between(first, last),
        by=("slot", "block_root"),
    )

    found = bf.load_proposals(subjects, since=first, until=last)

    assert requests == explorer.requests
    assert_frame_equal(without_counts(expected), found)


@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_withdrawals_of_the_last_100_epochs(chain, explorer, count, requests):
    """The default range is 100 epochs; rows are chronological."""
    latest = chain.meta["latest_epoch"]
    expected = rows(
        chain,
        "validator_withdrawals",
        below(count),
        between(latest - 99, latest),
        by="withdrawal_index",
    )

    found = bf.load_validator_withdrawals(range(count))

    assert requests == explorer.requests
    assert_frame_equal(expected, found)


@pytest.mark.more
@pytest.mark.parametrize(
    ("first", "last", "requests"),
    [(0, 0, 1), (0, 99, 1), (0, 100, 2), (50, 349, 3), (370, 469, 1), (0, 469, 5)],
)
def test_withdrawals_over_windows(chain, explorer, first, last, requests):
    """Three windows return every epoch once."""
    expected = rows(
        chain,
        "validator_withdrawals",
        below(100),
        between(first, last),
        by="withdrawal_index",
    )

    found = bf.load_validator_withdrawals(range(100), since=first, until=last)

    assert requests == explorer.requests
    assert_frame_equal(expected, found)
    assert last - first < 300 or 100 < found.height


@pytest.mark.more
@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_attestations_of_the_last_100_epochs(chain, explorer, count, requests):
    """The default range is all that the service has, in one window."""
    latest = chain.meta["latest_epoch"]
    expected = rows(
        chain,
        "attestations",
        below(count),
        between(latest - 99, latest),
        by=("validator_index", "epoch"),
    )

    found = bf.load_attestations(range(count))

    # Some of a thousand were not always active: their activity epochs are requested.
    assert requests + (count == 1000) == explorer.requests
    is_open = (pl.col("epoch") >= latest - 1) & (pl.col("status") == "missed")
    pending = pl.when(is_open).then(pl.lit("pending")).otherwise("status")
    assert_frame_equal(expected.with_columns(status=pending), found)
    if count > 1:
        assert {"included", "missed", "pending"} == set(found["status"])


@pytest.mark.parametrize("window", [(370, 469), (370, 370), (469, 469), (400, 431)])
def test_attestations_slim(chain, explorer, window):
    """slim=True changes only the committee, whatever the range."""
    first, last = window
    whole = bf.load_attestations([5, 3], since=first, until=last)

    slim = bf.load_attestations([5, 3], since=first, until=last, slim=True)

    assert 2 == explorer.requests
    assert [3] * (last - first + 1) + [5] * (last - first + 1) == whole["validator_index"].to_list()
    assert_frame_equal(whole.with_columns(committee_index=pl.lit(None, pl.Int64)), slim)
    assert 0 == whole["committee_index"].null_count()


def test_attestations_older_than_the_service_keeps(chain, explorer):
    """Epoch 369 of 469 is one too old: the call raises before any request."""
    assert 469 == chain.meta["latest_epoch"]

    with pytest.raises(errors.UsageError, match=r"epoch 369 .* 370 to 469"):
        bf.load_attestations(1, since=369)

    assert 0 == explorer.requests


@pytest.mark.parametrize("count", [1, 11, pytest.param(101, marks=pytest.mark.more)])
def test_stats_take_a_request_for_each_validator(chain, explorer, count):
    """One request per validator returns all days."""
    expected = rows(chain, "validator_stats", below(count), by=("validator_index", "day"))

    found = bf.load_validator_stats(range(count))

    assert count == explorer.requests
    assert_frame_equal(expected, found)
    assert {0, 1} <= set(found["day"])


@pytest.mark.parametrize(("window", "days"), [((0, 0), [0]), ((0, 1), [0, 1]), ((1, 1), [1])])
def test_stats_of_some_days(chain, explorer, window, days):
    """A range of days takes one request, whatever its length."""
    found = bf.load_validator_stats(7, since=window[0], until=window[1])

    assert 1 == explorer.requests
    assert days == found["day"].to_list()
    assert_frame_equal(
        rows(chain, "validator_stats", pl.col("validator_index") == 7, between(*window, "day")),
        found,
    )


def test_stats_by_public_key(chain, explorer):
    """One request looks up the public keys, then one request per validator."""
    known = keys(chain, 4)

    found = bf.load_validator_stats([known[3], 1, known[1], "2"])

    assert 1 + 3 == explorer.requests
    assert_frame_equal(bf.load_validator_stats([1, 2, 3]), found)


def test_stats_of_an_unknown_key(chain, explorer):
    """It is listed as missing, alone and beside others; strict raises."""
    unknown = "0x" + "ab" * 48

    with pytest.warns(bf.MissingRows, match="0xabab"):
        found = bf.load_validator_stats([unknown, *keys(chain, 1)])

    assert 3 == explorer.requests
    assert {0} == set(found["validator_index"])
    with pytest.raises(bf.MissingRows, match="0xabab"):
        bf.load_validator_stats([unknown, *keys(chain, 1)], strict=True)
    with pytest.warns(bf.MissingRows, match="0xabab"):
        assert bf.load_validator_stats(unknown).schema == found.schema


@pytest.mark.parametrize("load", [bf.load_validators, bf.load_performance, bf.load_income_history])
def test_an_unknown_public_key(explorer, load):
    """Alone it returns no rows after one request, with a warning."""
    with pytest.warns(bf.MissingRows, match=r"1 unknown to the service \(0xabab"):
        found = load("0x" + "ab" * 48)

    assert 1 == explorer.requests
    assert 0 == found.height


def test_the_leaderboard_agrees_with_performance(chain, explorer):
    """The hundred best validators with their figures, sorted by rank."""
    board = bf.load_leaderboard()
    figures = bf.load_performance(board["validator_index"])

    assert list(range(1, 101)) == board["rank_7d"].to_list()
    assert_frame_equal(rows(chain, "leaderboard", by="rank_7d").head(100), board)
    same = ["validator_index", "rank_7d", "performance_7d_gwei", "performance_31d_gwei"]
    assert_frame_equal(figures.select(same).sort("rank_7d"), board.select(same))
    assert board["performance_7d_gwei"].is_sorted(descending=True)
    assert 2 == explorer.requests


def luck(chain, subjects):
    """Return the luck of a set that is active since genesis, as the service defines it."""
    known = chain.scan("validators").collect()
    now = chain.meta["latest_epoch"]
    active = known.filter(
        pl.col("activation_epoch") <= now,
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") > now),
    )
    own = active.filter(pl.col("validator_index").is_in(subjects))["effective_balance_gwei"].sum()
    share = own / active["effective_balance_gwei"].sum()
    proposed = rows(
        chain,
        "blocks",
        pl.col("proposer_index").is_in(subjects),
        pl.col("status") == "proposed",
        by="slot",
    )["slot"]
    # The chain is two days old: the first time frame of five days has no more slots.
    slots = chain.meta["latest_slot"] + 1
    return len(proposed) / (slots * share), 1 / share, proposed


@pytest.mark.more
@pytest.mark.parametrize("subjects", [[11], [3, 1, 2], list(range(100))])
def test_luck_is_computed_from_the_blocks(chain, explorer, subjects):
    """Proposed over expected blocks of up to five days, in one row for the set."""
    ratio, interval, proposed = luck(chain, subjects)

    found = bf.load_proposal_luck(subjects)

    assert 1 == explorer.requests
    (row,) = found.rows(named=True)
    assert ",".join(map(str, subjects)) == row["validators"]
    assert pytest.approx(ratio) == row["proposal_luck"]
    assert pytest.approx(interval) == row["average_proposal_interval"]
    assert "5 days" == row["time_frame"]
    genesis = chain.scan("epochs").filter(epoch=0).collect()["time"][0]
    expected = genesis + timedelta(seconds=12 * round(proposed[-1] + interval))
    assert expected == row["next_proposal_estimate_time"]


def test_luck_agrees_with_the_dataset(chain, explorer):
    """Sets with a row in the dataset have the same luck."""
    known = rows(chain, "proposal_luck", by="validators")

    found = pl.concat(
        bf.load_proposal_luck(subjects.split(",")) for subjects in known["validators"]
    )

    assert known.height == explorer.requests > 1
    assert_frame_equal(known, found)


def test_luck_of_keys_and_of_a_set_without_proposals(chain, explorer):
    """Public keys name the same set; a set without proposals has neither luck nor time frame."""
    proposers = set(rows(chain, "blocks", by="slot").filter(status="proposed")["proposer_index"])
    validators = rows(chain, "validators", by="validator_index")["validator_index"]
    idle = [index for index in validators if index not in proposers][:2]

    by_index, by_key = (bf.load_proposal_luck(v).drop("validators") for v in (7, keys(chain, 8)[7]))

    assert_frame_equal(by_index, by_key)
    assert 2 == len(idle)
    (row,) = bf.load_proposal_luck(idle).rows(named=True)
    assert [None] * 3 == [
        row[name] for name in ("proposal_luck", "next_proposal_estimate_time", "time_frame")
    ]


def test_luck_of_a_set_that_is_too_large(explorer):
    """101 validators do not fit into one request, so the call raises."""
    with pytest.raises(errors.UsageError, match="too large"):
        bf.load_proposal_luck(range(101))

    assert 0 == explorer.requests


@pytest.fixture(scope="module")
def both(chain):
    """Explorers that serve the same chain with the specification's and the public field names."""
    with Server(chain) as spec, Server(chain, wire="public", rate=10_000) as public:
        servers = (spec, public)
        yield [bf.Explorer(s.url, chain=s.service.chain, rate=10_000) for s in servers]


@pytest.mark.more
@pytest.mark.parametrize("name", LOADERS)
def test_rows_of_the_public_wire_are_the_same(both, name):
    """Spellings, shapes and placeholders differ; rows are equal, also for validator 0."""
    for subjects in ([0], list(range(90)), [25]):
        spec, public = (LOADERS[name](subjects, explorer=explorer) for explorer in both)

        assert_frame_equal(spec, public)


def test_the_leaderboard_of_the_public_service_is_the_same(both):
    """A hundred rows, sorted by rank."""
    spec, public = (bf.load_leaderboard(explorer=explorer) for explorer in both)

    assert 100 == spec.height
    assert_frame_equal(spec, public)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_zero_rows_have_all_columns(explorer, name):
    """Without subjects, no request is sent and the schema is whole."""
    unknown = LOADERS[name]([])

    assert 0 == explorer.requests
    assert 0 == unknown.height
    assert LOADERS[name]([0, 1, 2]).schema == unknown.schema


@pytest.mark.parametrize("name", LOADERS)
def test_an_invalid_validator_raises(explorer, name):
    """The error names the value, and no request is sent."""
    with pytest.raises(errors.UsageError, match="'seven'"):
        LOADERS[name](["seven"])

    assert 0 == explorer.requests


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda: bf.load_attestations(1, slim="yes"), "slim='yes'"),
        (lambda: bf.load_attestations(1, until=470), "470"),
        (lambda: bf.load_proposals(1, since=470), "470"),
        (lambda: bf.load_proposals(1, since=9, until=8), "since (epoch 9)"),
        (lambda: bf.load_validator_withdrawals(1, until=10**6), "1000000"),
        (lambda: bf.load_validator_stats(1, since=1, until=0), "since (day 1)"),
        (lambda: bf.load_validator_stats(1, since="soon"), "soon"),
        (lambda: bf.load_leaderboard(first=3), "first"),
    ],
)
def test_bad_input_raises_before_any_request(explorer, load, words):
    """The error names the value."""
    with pytest.raises((errors.UsageError, TypeError), match=re.escape(words)):
        load()

    assert 0 == explorer.requests


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", ["bls_changes", "pool_validators", "deposits", "proposals", "validator_withdrawals"]
)
def test_validators_without_items_are_not_missing(explorer, name):
    """A validator without changes, deposits, blocks or withdrawals is not missing."""
    found = LOADERS[name]([999_999, 5], strict=True)

    assert 999_999 not in found.to_dict(as_series=False).get("validator_index", [])


@pytest.mark.parametrize(
    "name", ["execution_performance", "performance", "attestation_efficiency", "validator_stats"]
)
def test_a_validator_that_does_not_exist_is_listed(explorer, name):
    """A warning lists it; strict raises."""
    with pytest.warns(bf.MissingRows, match=r"1 unknown to the service \(999999\)"):
        LOADERS[name]([999_999, 5])
    with pytest.raises(bf.MissingRows, match=r"1 unknown to the service \(999999\)"):
        LOADERS[name]([999_999, 5], strict=True)
