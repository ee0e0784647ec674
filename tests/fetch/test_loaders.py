"""Loaders against the local explorer, over a real socket: complete, exact, in the fewest requests.

Expected rows are read from the dataset's own files with polars alone.
"""

from __future__ import annotations

import asyncio
import re
import threading

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server import Server


def rows(chain, table, *conditions):
    """Return the rows of a table of the dataset that meet the conditions, by key."""
    key = {
        "income_history": ["validator_index", "epoch"],
        "balance_history": ["validator_index", "epoch"],
        "blocks": ["slot", "block_root"],
        "graffiti_wall": ["slot", "x", "y"],
    }[table]
    return chain.scan(table).filter(*conditions).sort(key, nulls_last=True).collect()


def between(first, last):
    return pl.col("epoch").is_between(first, last)


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_250_validators_over_250_epochs_take_nine_requests(chain, explorer):
    """S15: three batches of three windows, and every cell is that of the dataset.

    Some validators were activated later: one more request confirms that they have no earlier rows.
    """
    finalized = chain.meta["finalized_epoch"]

    income = bf.load_income_history(range(250), since=-250)

    assert 9 + 1 == explorer.requests
    expected = rows(
        chain,
        "income_history",
        pl.col("validator_index") < 250,
        between(finalized - 249, finalized),
    )
    assert_frame_equal(expected, income)
    assert income.select("validator_index", "epoch").is_unique().all()


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
@pytest.mark.parametrize(
    ("first", "last", "requests"),
    [(0, 0, 1), (0, 98, 1), (0, 99, 1), (0, 100, 2), (1, 101, 2), (50, 250, 3), (99, 99, 1),
     (368, 467, 1), (467, 467, 1), (268, 467, 2), (0, 467, 5)],
)  # fmt: skip
def test_every_kind_of_border(chain, explorer, first, last, requests):
    """P22: epoch 0, one epoch, 99, 100, 101, the finalized epoch: all rows, fewest requests."""
    assert 467 == chain.meta["finalized_epoch"]

    income = bf.load_income_history([3, 1, 2], since=first, until=last)

    assert requests == explorer.requests
    expected = rows(
        chain, "income_history", pl.col("validator_index").is_in([1, 2, 3]), between(first, last)
    )
    assert_frame_equal(expected, income)


def test_public_keys_and_indices_mix(chain, explorer):
    """A validator is requested once, by index or by key."""
    known = chain.scan("validators").sort("validator_index").collect()
    keys = known["pubkey"]

    found = bf.load_validators([keys[5], 5, keys[4].upper().replace("0X", "0x"), "3", keys[2][2:]])

    assert 1 == explorer.requests
    assert_frame_equal(known[2:6], found)


@pytest.mark.parametrize(("count", "requests"), [(1, 1), (100, 1), (101, 2), (1000, 10)])
def test_validators_in_batches_of_a_hundred(chain, explorer, count, requests):
    """By index in the URL, by key in a POST when the URL would be too long: the same rows."""
    known = chain.scan("validators").sort("validator_index").collect()[:count]

    assert_frame_equal(known, bf.load_validators(range(count)))
    assert requests == explorer.requests
    assert_frame_equal(known, bf.load_validators(known["pubkey"]))
    assert 2 * requests == explorer.requests


def test_balances_end_at_the_head(chain, explorer):
    """Without since and until, the last 100 processed epochs are loaded."""
    latest = chain.meta["latest_epoch"]

    balances = bf.load_balance_history(7)

    assert 1 == explorer.requests
    expected = rows(
        chain, "balance_history", pl.col("validator_index") == 7, between(latest - 99, latest)
    )
    assert_frame_equal(expected, balances)


@pytest.mark.more
@pytest.mark.parametrize(
    ("count", "first", "last", "requests"),
    [(1, 0, 0, 1), (100, 0, 99, 1), (101, 0, 100, 4), (101, 50, 349, 6), (1000, 400, 400, 10)],
)
def test_balances_of_many_over_windows(chain, explorer, count, first, last, requests):
    """Batches of 100 by windows of 100 epochs, and every cell is that of the dataset."""
    known = rows(chain, "balance_history", between(first, last))
    there = known.group_by("validator_index").len().filter(len=last - first + 1)
    validators = there["validator_index"].sort()[:count]

    balances = bf.load_balance_history(validators, since=first, until=last)

    assert requests == explorer.requests
    assert count == len(validators)
    expected = known.filter(pl.col("validator_index").is_in(validators.implode()))
    assert_frame_equal(expected, balances)


@pytest.mark.parametrize("count", [1, 11, pytest.param(101, marks=pytest.mark.more)])
def test_epochs_one_by_one(chain, explorer, count):
    """As many requests as epochs."""
    epochs = bf.load_epochs(since=0, until=count - 1)

    assert count == explorer.requests
    assert_frame_equal(chain.scan("epochs").filter(between(0, count - 1)).collect(), epochs)


@pytest.fixture(scope="module")
def years(tmp_path_factory):
    """A small chain with nearly three years of yields behind it."""
    from beaconframes.simulator import simulate

    folder = tmp_path_factory.mktemp("years") / "data"
    return simulate(folder, validators=60, epochs=8, seed=3, history_days=1000)


@pytest.mark.more
@pytest.mark.parametrize(
    "count",
    [1, 11, pytest.param(101, marks=pytest.mark.more), pytest.param(1000, marks=pytest.mark.long)],
)
def test_days_one_by_one(years, count):
    """As many requests as days, exact to the last digit."""
    with bf.local(years) as running:
        days = bf.load_yield_index(since=0, until=count - 1)
        requests = running.requests

    assert count == requests
    known = years.scan("yield_index").filter(pl.col("day") < count).sort("day").collect()
    assert_frame_equal(known, days)


def test_all_committees(chain, explorer):
    """P22: one request per period."""
    known = chain.scan("sync_committees").sort("period", "seat").collect()
    periods = known["period"].unique().sort()

    assert_frame_equal(known, bf.load_sync_committees(periods))
    assert len(periods) == explorer.requests > 2


@pytest.mark.more
def test_epochs_and_their_slots(chain, explorer):
    """One request per epoch; missed and orphaned slots are rows."""
    epochs = bf.load_epochs(since=100, until=102)
    blocks = bf.load_epoch_slots(since=100, until=163)

    assert 3 + 64 == explorer.requests
    assert_frame_equal(chain.scan("epochs").filter(between(100, 102)).collect(), epochs)
    assert_frame_equal(rows(chain, "blocks", between(100, 163)), blocks)
    assert {"proposed", "missed"} <= set(blocks["status"])
    assert blocks.filter(status="missed")["block_root"].null_count() > 0


def test_finalized_is_a_bound(chain):
    """E12: `finalized` is the latest finalized unit, as in the path of the service."""
    final = chain.meta["finalized_epoch"]
    with bf.local(chain):
        one = bf.load_epochs(since="finalized", until="finalized")
        rest = bf.load_epochs(since="finalized")
        income = bf.load_income_history([1], since=-3, until="finalized")

    assert [final] == one["epoch"].to_list()
    assert list(range(final, chain.meta["latest_epoch"] + 1)) == rest["epoch"].to_list()
    assert final == income["epoch"].max()


def test_latest_is_one_request(chain, explorer):
    """Without a range, the latest epoch, its slots, latest day and committee: one request each."""
    latest = chain.meta["latest_epoch"]

    assert [latest] == bf.load_epochs()["epoch"].to_list()
    assert [latest] == bf.load_epoch_slots()["epoch"].unique().to_list()
    assert [1] == bf.load_yield_index()["day"].to_list()
    assert [latest // 256] == bf.load_sync_committees()["period"].unique().to_list()
    state = bf.load_latest_state()
    assert [latest] == state["current_epoch"].to_list()
    assert [chain.meta["finalized_epoch"]] == state["current_finalized_epoch"].to_list()
    assert 5 == explorer.requests


def test_a_sync_committee_is_one_row_per_seat(chain, explorer):
    """512 seats in order, with duplicates."""
    committee = bf.load_sync_committees([0, 1])

    assert 2 == explorer.requests
    assert list(range(512)) * 2 == committee["seat"].to_list()
    assert_frame_equal(
        chain.scan("sync_committees").filter(pl.col("period") <= 1).collect(), committee
    )
    assert 512 > committee.filter(period=0)["validator_index"].n_unique()


def list_painted_pixels(blocks):
    """Return the pixels that the graffiti of blocks paint, by the two accepted forms."""
    forms = (
        re.compile(r"graffitiwall:([0-9]{1,3}):([0-9]{1,3}):#([0-9a-fA-F]{6})"),
        re.compile(r"gw:([0-9]{3})([0-9]{3})([0-9a-fA-F]{6})"),
    )
    found = []
    for slot, graffiti, proposer in blocks.select("slot", "graffiti", "proposer_index").rows():
        text = bytes.fromhex((graffiti or "0x")[2:]).decode("latin-1")
        match = next((m for form in forms if (m := form.search(text))), None)
        if match:
            found.append((slot, int(match[1]), int(match[2]), match[3], proposer))
    return found


@pytest.mark.more
def test_the_wall_is_what_the_blocks_painted(chain, explorer):
    """The endpoint and the graffiti of the blocks give the same picture."""
    wall = bf.load_graffiti_wall(since=32 * 100, until=32 * 164 - 1)
    blocks = bf.load_epoch_slots(since=100, until=163)

    pixels = wall.select("slot", "x", "y", "color", "validator_index").rows()
    assert list_painted_pixels(blocks) == pixels
    assert len(pixels) > 100


def test_summarize_keeps_the_newest_paint(chain, explorer):
    """One row per pixel, the latest one of the range."""
    everything = bf.load_graffiti_wall(since=0)
    newest = {(x, y): (slot, color) for slot, x, y, color in
              everything.select("slot", "x", "y", "color").rows()}  # fmt: skip

    summary = bf.load_graffiti_wall(since=0, summarize=True)

    assert newest == {(x, y): (slot, color) for slot, x, y, color in
                      summary.select("slot", "x", "y", "color").rows()}  # fmt: skip
    assert_frame_equal(rows(chain, "graffiti_wall"), everything)


def test_a_summary_ends_at_until(explorer):
    """Later paint hides nothing, although the service raises an end below slot 10,000."""
    early = bf.load_graffiti_wall(since=0, until=5_000)
    newest = {(x, y): slot for slot, x, y in early.select("slot", "x", "y").rows()}

    summary = bf.load_graffiti_wall(since=0, until=5_000, summarize=True)

    pixels = summary.select("slot", "x", "y").rows()
    assert newest == {(x, y): slot for slot, x, y in pixels}
    assert 5_000 >= summary["slot"].max()


def test_a_region_of_the_wall(chain, explorer):
    """Both corners belong to it."""
    everything = bf.load_graffiti_wall(since=0)
    left, top = everything["x"].min(), everything["y"].min()

    region = bf.load_graffiti_wall((left, top, left + 40, top + 30), since=0)

    inside = (pl.col("x") <= left + 40) & (pl.col("y") <= top + 30)
    assert_frame_equal(everything.filter(inside), region)
    assert 0 < region.height < everything.height


def test_dates_select_rows_that_start_on_them(chain, explorer):
    """A bare date is the whole UTC day; a range past the head ends at the head."""
    meta = chain.scan("balance_history").select("epoch", "time").unique().collect()
    day = meta["time"].max().date()

    balances = bf.load_balance_history(5, since=day.isoformat(), until="2099-12-31")

    expected = meta.filter(pl.col("time").dt.date() == day)["epoch"].sort().to_list()
    assert expected == balances["epoch"].to_list()


def test_duties_that_can_still_be_included_are_pending(chain, explorer):
    """H4: a block of the next epoch can include an attestation; older ones are missed."""
    latest = chain.meta["latest_epoch"]

    found = bf.load_attestations(range(200), since=-9)

    without = found.filter(pl.col("inclusion_slot").is_null()).group_by("status")
    epochs = dict(without.agg(pl.col("epoch").unique().sort()).iter_rows())
    assert {latest - 1, latest} >= set(epochs["pending"]) >= {latest}
    assert latest - 1 > max(epochs["missed"])
    assert {"included", "missed", "pending"} == set(found["status"])
    assert "pending" not in set(found.filter(pl.col("inclusion_slot").is_not_null())["status"])


def test_ages_count_back_from_the_end_of_a_dataset(chain, explorer):
    """The present of a dataset is its end: 384 seconds per epoch."""
    latest = chain.meta["latest_epoch"]

    balances = bf.load_balance_history(5, since="64m")

    assert list(range(latest - 9, latest + 1)) == balances["epoch"].to_list()


def test_missing_rows_are_named(explorer):
    """P11: an unknown validator is named in the warning, and in the error with strict."""
    with pytest.warns(bf.MissingRows, match=r"1 unknown to the service \(999999\)") as caught:
        found = bf.load_validators([1, 999_999])

    assert [1] == found["validator_index"].to_list()
    assert [{"validator_index": 999_999}] == caught[0].message.missing.select(
        "validator_index"
    ).to_dicts()
    assert __file__ == caught[0].filename
    with pytest.raises(bf.MissingRows, match="999999"):
        bf.load_validators([1, 999_999], strict=True)
    with bf.settings(strict=True), pytest.raises(bf.MissingRows, match="999999"):
        bf.load_validators([1, 999_999])


def test_public_keys_that_the_service_drops_are_counted(chain, explorer):
    """Rows of income have no key, so the warning counts the keys without rows."""
    key = chain.scan("validators").filter(validator_index=5).collect()["pubkey"][0]

    with pytest.warns(bf.MissingRows, match=r"1 unknown to the service \(0xab"):
        found = bf.load_income_history([key, "0x" + "ab" * 48], since=3, until=5)

    assert [5] * 3 == found["validator_index"].to_list()
    assert 3 == bf.load_income_history([key, 6], since=3, until=5).filter(validator_index=5).height


def test_epochs_of_an_exited_validator_are_not_missing(chain, explorer):
    """G1: a validator has no income after its exit, and none is missing."""
    counts = (
        chain.scan("income_history").group_by("validator_index").len().collect()
        .filter(pl.col("len") < 468)["validator_index"].sort()
    )  # fmt: skip
    validator = counts[0]
    have = set(rows(chain, "income_history", pl.col("validator_index") == validator)["epoch"])

    found = bf.load_income_history(validator, since=0, until=467, strict=True)

    assert have == set(found["epoch"])
    assert bf.missing().is_empty()


@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_zero_rows_still_mean_all_columns(explorer):
    """Without subjects no request is sent, and the frame has the whole schema."""
    no_rows = bf.load_validators([])

    assert 0 == explorer.requests
    assert 0 == no_rows.height
    assert bf.load_validators(1).schema == no_rows.schema


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda: bf.load_income_history(1, since=10, until=5), "since (epoch 10) is after"),
        (lambda: bf.load_income_history(1, since=468), "468"),
        (lambda: bf.load_balance_history(1, until=10**6), "1000000"),
        (lambda: bf.load_epochs(since=470, until=470), "470"),
        (lambda: bf.load_epochs(since="yesterday"), "yesterday"),
        (lambda: bf.load_graffiti_wall((0, 0, 1000, 10)), "1000"),
        (lambda: bf.load_graffiti_wall(summarize="yes"), "yes"),
        (lambda: bf.load_sync_committees("newest"), "newest"),
        (lambda: bf.load_sync_committees(-1), "-1"),
        (lambda: bf.load_validators("abc"), "abc"),
    ],
)
def test_invalid_input_raises_before_any_request(explorer, load, words):
    """The error names the value, and the server receives no request."""
    with pytest.raises(errors.UsageError, match=re.escape(words)):
        load()

    assert 0 == explorer.requests


def test_pandas_on_request(explorer):
    """The same rows, backed by Arrow, exact to the last digit."""
    exact = bf.load_income_history(range(3), since=0, until=9)

    with bf.settings(frame="pandas"):
        frame = bf.load_income_history(range(3), since=0, until=9)

    assert exact.rows() == [
        tuple(row) for row in pl.from_pandas(frame).select(exact.columns).rows()
    ]
    assert "decimal128(28, 0)[pyarrow]" == str(frame["tx_fee_reward_wei"].dtype)


def test_inside_a_running_event_loop(explorer):
    """As in a notebook cell."""

    async def cell():
        return bf.load_validators(range(10))

    assert 10 == asyncio.run(cell()).height


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_from_many_threads(explorer):
    """One explorer, eight threads, the right rows for each."""
    found = {}

    def work(number):
        found[number] = bf.load_balance_history(number, since=0, until=149)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {n: [n] * 150 for n in range(8)} == {
        n: frame["validator_index"].to_list() for n, frame in found.items()
    }


def test_nested_local_explorers_restore_the_previous_one(chain):
    """Closing the inner one makes the outer one the default again."""
    with bf.local(chain) as outer:
        with bf.local(chain) as inner:
            bf.load_latest_state()
        bf.load_latest_state()

    assert (1, 1) == (inner.requests, outer.requests)


@pytest.mark.parametrize(
    ("connect", "words"),
    [
        (lambda: bf.connect("ftp://explorer.example"), "start with http"),
        (lambda: bf.connect("explorer.example"), "start with http"),
        (lambda: bf.connect("http://explorer.example", api_key="k" * 20), "http"),
        (lambda: bf.connect(chain="ropsten"), "ropsten"),
        (lambda: bf.connect(api_key="two words"), "api_key"),
        (bf.connect, "BEACONFRAMES_API_KEY"),
        (lambda: bf.load_validators(1), "BEACONFRAMES_API_KEY"),
    ],
)
def test_an_invalid_connection_raises_at_once(connect, words):
    """A wrong address, a missing key, an unknown chain: one clear error, and no request."""
    with pytest.raises(errors.ConfigError, match=words) as refused:
        connect()

    assert "k" * 20 not in str(refused.value)
    assert "two words" not in str(refused.value)


def test_a_key_from_the_environment_stays_with_its_address(chain, monkeypatch):
    """A key from the environment is not sent to an address given in the call."""
    monkeypatch.setenv("BEACONFRAMES_API_KEY", "secret-of-another-host")
    with Server(chain, keys=["secret-of-another-host"]) as server:
        with bf.Explorer(server.url) as explorer, pytest.raises(errors.Unauthorized):
            bf.load_latest_state(explorer=explorer)
        with bf.Explorer(server.url, api_key="secret-of-another-host") as explorer:
            assert 1 == bf.load_latest_state(explorer=explorer).height


@pytest.mark.more
@pytest.mark.parametrize("source", ["service", "store", "dataset"])
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_polars_knows_that_rows_are_sorted(chain, explorer, tmp_path, source):
    """Groups of a sorted column take polars a third of the time."""
    opened = {
        "service": lambda: bf.connect(explorer.url, store=False),
        "store": lambda: bf.connect(explorer.url, store=tmp_path),
        "dataset": lambda: bf.open(chain),
    }
    with opened[source]() as source_of_rows:
        for _ in range(2):
            # The second load is read from the store.
            income = bf.load_income_history([9, 1, 2], since=-3, explorer=source_of_rows)
            slots = bf.load_epoch_slots(since=-2, explorer=source_of_rows)

    assert income["validator_index"].flags["SORTED_ASC"]
    assert slots["slot"].flags["SORTED_ASC"]


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::beaconframes.errors.EndpointDeprecated")
def test_polars_knows_no_order_of_rows_in_the_order_of_the_service(explorer):
    """A ranking is not sorted by its key."""
    entities = bf.v2.load_entities("24h", sort_by="net_share", sort_order="desc")

    names = entities["entity"]
    assert names.to_list() != sorted(names)
    assert not names.flags["SORTED_ASC"]
