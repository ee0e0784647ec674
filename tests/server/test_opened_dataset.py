"""`bf.open`: loaders read a dataset on disk, and return what the local explorer returns."""

from __future__ import annotations

import shutil
import warnings
from functools import partial

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.active_periods import NOT_IN_DATASET, NOT_RETURNED
from beaconframes.answers import answer as answers
from beaconframes.dataset import Dataset, Grid, ledger
from beaconframes.errors import DatasetError, UsageError

from ..support import small_dataset as small
from ..support.cases import every

KEY = "0x" + "ab" * 48
LOADS = {
    "income": lambda e: bf.load_income_history(range(101), since=250, until=255, explorer=e),
    "latest income": lambda e: bf.load_income_history([3, 1, 2], explorer=e),
    "windows": lambda e: bf.load_balance_history(range(120), since=0, until=220, explorer=e),
    "days": lambda e: bf.load_balance_history([1], since="2d", explorer=e),
    "not active": lambda e: bf.load_income_history(range(990, 1005), since=300, explorer=e),
    "proposals": lambda e: bf.load_proposals(range(300), since=0, until=310, explorer=e),
    "withdrawals": lambda e: bf.load_validator_withdrawals(range(200), since=3, explorer=e),
    "attestations": lambda e: bf.load_attestations(range(50), since=-50, explorer=e),
    "slim": lambda e: bf.load_attestations([1, 2], since=-5, slim=True, explorer=e),
    "old attestations": lambda e: bf.load_attestations([1, 2], since=100, until=103, explorer=e),
    "all attestations": lambda e: bf.load_attestations([1, 2], since=150, explorer=e),
    "epochs": lambda e: bf.load_epochs(since=100, until=110, explorer=e),
    "latest epoch": lambda e: bf.load_epochs(explorer=e),
    "epoch slots": lambda e: bf.load_epoch_slots(since=100, until=103, explorer=e),
    "yield": lambda e: bf.load_yield_index(since=0, until=1, explorer=e),
    "future days": lambda e: bf.load_yield_index(since=0, until=90, explorer=e),
    "yield of V2": lambda e: bf.v2.load_yield_index(since=0, until=1, explorer=e),
    "latest yield of V2": lambda e: bf.v2.load_yield_index(explorer=e),
    "validators": lambda e: bf.load_validators(range(150), explorer=e),
    "unknown": lambda e: bf.load_validators([1, 10**9], explorer=e),
    "unknown key": lambda e: bf.load_validators([1, KEY], explorer=e),
    "history of an unknown key": lambda e: bf.load_income_history([KEY], explorer=e),
    "statistics": lambda e: bf.load_validator_stats(range(3), since=0, until=1, explorer=e),
    "all statistics": lambda e: bf.load_validator_stats(range(3), explorer=e),
    "committees": lambda e: bf.load_sync_committees([0, 1], explorer=e),
    "a committee that does not exist": lambda e: bf.load_sync_committees([0, 50], explorer=e),
    "next committee": lambda e: bf.load_sync_committees(["next"], explorer=e),
    "efficiency": lambda e: bf.load_attestation_efficiency(range(99), explorer=e),
    "slots": lambda e: bf.load_slots([*range(3200, 3206), "latest"], explorer=e),
    "slot withdrawals": lambda e: bf.load_slot_withdrawals(range(3200, 3206), explorer=e),
    "wall": lambda e: bf.load_graffiti_wall((0, 0, 500, 500), since=0, explorer=e),
    "leaderboard": lambda e: bf.load_leaderboard(explorer=e),
    "blocks": lambda e: bf.load_produced_blocks(range(30), explorer=e),
    "blocks of recipients": lambda e: bf.load_produced_blocks(
        [*bf.load_produced_blocks(5, explorer=e)["fee_recipient"].unique(), 3, KEY], explorer=e
    ),
    "state": lambda e: bf.load_latest_state(explorer=e),
    "rewards of V2": lambda e: bf.v2.load_rewards(range(12), since=100, until=101, explorer=e),
    "queues of V2": lambda e: bf.v2.load_queues(explorer=e),
    "deposits": lambda e: bf.load_deposits([1, 2, KEY], explorer=e),
    "credential changes": lambda e: bf.load_bls_changes(range(200), explorer=e),
    "credential changes of an unknown key": lambda e: bf.load_bls_changes([KEY], explorer=e),
    "luck": lambda e: bf.load_proposal_luck([1, 2], explorer=e),
    "pool": lambda e: bf.load_pool_validators(range(150), explorer=e),
    "slot attestations": lambda e: bf.load_slot_attestations([3200, 9000], explorer=e),
    "balances of addresses": lambda e: bf.load_address_balances(["0x" + "12" * 20], explorer=e),
    "names": lambda e: bf.load_names(["0x" + "12" * 20, "unknown.eth"], explorer=e),
    "origin of an unknown name": lambda e: bf.load_deposit_origin("unknown.eth", explorer=e),
    "transaction": lambda e: bf.load_transaction_deposits("0x" + "12" * 32, explorer=e),
    "a block that does not exist": lambda e: bf.load_execution_blocks([5, 10**9], explorer=e),
    "a block root": lambda e: bf.load_slots(["0x" + "12" * 32, 3200], explorer=e),
    "a chart": lambda e: str(bf.load_chart("validators", explorer=e).size),
    "no chart": lambda e: str(bf.load_chart("tx_count_chart_data", explorer=e).size),
    "rewards of a future epoch": lambda e: bf.v2.load_rewards([1], since=9999, explorer=e),
    "rewards of unknown keys": lambda e: bf.v2.load_rewards([KEY], since=400, explorer=e),
    "sums of V2": lambda e: bf.v2.load_rewards_aggregate(range(150), "24h", explorer=e),
    "yields of V2": lambda e: bf.v2.load_apy_roi([1, 2], "24h", explorer=e),
    "performance of V2": lambda e: bf.v2.load_performance([3, 1], since=-2, explorer=e),
    "sum of performance": lambda e: bf.v2.load_performance_aggregate([3, 1], "7d", explorer=e),
    "balances of V2": lambda e: bf.v2.load_balances([3, KEY], since=400, explorer=e),
    "validators of V2": lambda e: bf.v2.load_validators(bf.v2.dashboard(1), explorer=e),
    "an unknown dashboard": lambda e: bf.v2.load_validators(bf.v2.dashboard(99), explorer=e),
    "metadata": lambda e: bf.v2.load_metadata([5, 3], explorer=e),
    "places in queues": lambda e: bf.v2.load_validator_queues(range(1000), explorer=e),
    "slot of V2": lambda e: bf.v2.load_slot([3201, "latest", 3200], explorer=e),
    "an unknown root": lambda e: bf.v2.load_slot(["0x" + "12" * 32], explorer=e),
    "a slot of the future": lambda e: bf.v2.load_slot([10**7], explorer=e),
    "withdrawals of V2": lambda e: bf.v2.load_slot_withdrawals(range(3200, 3206), explorer=e),
    "withdrawals of a root": lambda e: bf.v2.load_slot_withdrawals(
        [bf.load_slots(3200, explorer=e)["block_root"].item(), 3201], explorer=e
    ),
    "sweeps": lambda e: bf.v2.load_slot_withdrawals(
        [3201, 3200], range(500), type_filter=["partial_sweep"], explorer=e
    ),
    "deposits of V2": lambda e: bf.v2.load_slot_deposits([3201, 3200, 64], explorer=e),
    "duties of V2": lambda e: bf.v2.load_slot_attestation_duties([3201, 64], [1, 2], explorer=e),
    "duties that are not final": lambda e: bf.v2.load_slot_attestation_duties(["x"], explorer=e),
    "sync duties": lambda e: bf.v2.load_slot_sync_committee_duties([3201, 64], explorer=e),
    "block of V2": lambda e: bf.v2.load_block([3000, "latest", 10**9], explorer=e),
    "block rewards": lambda e: bf.v2.load_block_rewards([3001, 3000, "finalized"], explorer=e),
    "committee of V2": lambda e: bf.v2.load_sync_committee([0, "latest"], explorer=e),
    "a committee of the future": lambda e: bf.v2.load_sync_committee([999], explorer=e),
    "members of V2": lambda e: bf.v2.load_sync_committee_validators([0], explorer=e),
    "periods of V2": lambda e: bf.v2.load_sync_committee_periods(range(30), explorer=e),
    "proposal slots": lambda e: bf.v2.load_proposal_slots(range(60), since=3200, explorer=e),
    "attestation slots": lambda e: bf.v2.load_attestation_slots([1, 2], since=-64, explorer=e),
    "deposit slots": lambda e: bf.v2.load_deposit_slots(range(90), explorer=e),
    "withdrawal slots": lambda e: bf.v2.load_withdrawal_slots([1, 2], since=3200, explorer=e),
    "upcoming duties": lambda e: bf.v2.load_upcoming_duty_slots(range(90), explorer=e),
    "state of V2": lambda e: bf.v2.load_state(explorer=e),
    "settings": lambda e: bf.v2.load_config(explorer=e),
    "network": lambda e: bf.v2.load_network_performance("24h", explorer=e),
    "entities": lambda e: bf.v2.load_entities("24h", explorer=e),
    "sub-entities": lambda e: bf.v2.load_sub_entities("Unknown", "24h", explorer=e),
    "owners": lambda e: bf.v2.load_owners("24h", sort_order="asc", search="a", explorer=e),
    "operators": lambda e: bf.v2.load_operators("24h", sort_by="beaconscore", explorer=e),
    "machines": lambda e: bf.v2.load_machine_names(explorer=e),
    "metrics": lambda e: bf.v2.load_machine_metrics(explorer=e),
    "metrics of an unknown machine": lambda e: bf.v2.load_machine_metrics("none", explorer=e),
    "the future": lambda e: bf.load_income_history([1], until=10**6, explorer=e),
    "pandas": lambda e: bf.load_epochs(since=-3, explorer=e, frame="pandas"),
}


@pytest.fixture(scope="module")
def opened(chain):
    """The same dataset as that of the server, without a server."""
    with bf.open(chain) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(running):
    """A client of the local explorer that serves this dataset."""
    head, chain = running.service.head, running.service.chain
    with bf.Explorer(running.url, chain=chain, head=head, store=False) as client:
        # The first response states that the service keeps old attestations.
        bf.load_latest_state(explorer=client)
        yield client


def observe(load, explorer):
    """Return the rows or the error of a load, its warnings, and the gaps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = load(explorer)
        except bf.BeaconframesError as error:
            return f"{type(error).__name__}: {error}", None, None
    # A dataset also states the reason for a row that it does not have.
    messages = [str(warning.message).replace(f" ({NOT_IN_DATASET})", "") for warning in caught]
    gaps = bf.missing()
    if "reason" in gaps.columns:
        gaps = gaps.with_columns(pl.col("reason").replace(NOT_RETURNED, NOT_IN_DATASET))
    return rows, messages, gaps


@pytest.mark.parametrize("name", every(6, LOADS))
def test_a_load_equals_that_of_the_local_explorer(opened, served, name):
    """F1: rows, errors, warnings and gaps are the same."""
    rows, messages, gaps = observe(LOADS[name], served)
    found, same_messages, same_gaps = observe(LOADS[name], opened)

    assert type(rows) is type(found)
    if isinstance(rows, str):
        assert rows == found
    elif name == "pandas":
        assert rows.equals(found)
    elif name == "places in queues":
        # Rows without a key are in the order of the calls; an opened dataset needs one call.
        assert_frame_equal(rows, found, check_exact=True, check_row_order=False)
    else:
        assert_frame_equal(rows, found, check_exact=True)
        assert_frame_equal(gaps, same_gaps)
    assert messages == same_messages


@pytest.fixture(scope="module")
def of_many_files(chain, tmp_path_factory):
    """The same dataset with about twenty files of each table."""
    dataset = Dataset.create(tmp_path_factory.mktemp("many") / "files", meta=chain.meta)
    with dataset.writing() as writer:
        for table in chain.tables():
            rows = chain.scan(table).collect()
            writer.add(table, rows.clear())
            for part in rows.iter_slices(rows.height // 20 + 1):
                writer.add_segment(table, part)
    return dataset


@pytest.fixture(scope="module", params=[bf.open, partial(bf.local, store=False)])
def reader_of_many_files(of_many_files, request):
    """It reads this dataset from its files, or through its local explorer."""
    with request.param(of_many_files) as explorer:
        yield explorer


@pytest.mark.parametrize("name", every(6, LOADS))
def test_a_load_from_many_files_has_the_same_rows(opened, reader_of_many_files, name):
    """F6: files without a requested row are not read."""
    rows, *_ = observe(LOADS[name], opened)
    found, *_ = observe(LOADS[name], reader_of_many_files)

    if isinstance(rows, pl.DataFrame):
        assert_frame_equal(rows, found, check_exact=True, check_row_order=name[:9] != "places in")
    else:
        assert type(rows) is type(found)


@pytest.mark.parametrize("load", [bf.load_income_history, bf.load_balance_history])
def test_files_without_a_requested_row_are_not_read(
    of_many_files, reader_of_many_files, monkeypatch, load
):
    """F6: a scan opens each of its files, so a query of few epochs took four times as long."""
    load(1, since=10, until=11, explorer=reader_of_many_files)  # It checks the files of the table.
    scans, scan = [], Dataset.scan_segments
    monkeypatch.setattr(
        Dataset,
        "scan_segments",
        lambda self, listed: scans.append(len(listed)) or scan(self, listed),
    )

    # The first and the last epoch continue in the files before and after.
    files = of_many_files.segments(load.__name__.removeprefix("load_"))
    since, until = (file.ranges["epoch"][1] for file in files[7:9])
    rows = load([0, 900], since=since, until=until, explorer=reader_of_many_files)

    assert 2 * (until - since + 1) == rows.height
    assert scans
    assert max(scans) <= 3


def test_rows_that_no_file_may_have_are_missing(reader_of_many_files):
    """A scan of no files would be an error of polars."""
    load = partial(bf.load_income_history, 5000, since=231, until=236)
    rows, messages, _ = observe(lambda e: load(explorer=e), reader_of_many_files)

    assert rows.is_empty()
    assert len(messages) == 1


@pytest.mark.more
@pytest.mark.parametrize("load", [bf.load_slots, bf.v2.load_slot])
def test_a_root_selects_one_of_the_two_blocks_of_a_slot(opened, chain, load):
    """A proposer was slashed for its second block, so that a slot number is not enough."""
    blocks = chain.scan("blocks").filter(pl.len().over("slot") > 1).collect()
    others = blocks.filter(pl.col("status") == "orphaned")["block_root"].to_list()

    assert others
    found = load(others, explorer=opened)
    assert others == found["block_root"].to_list()


def test_a_public_key_is_its_validator(opened):
    """Rows by public key are those by index, also for several parameters."""
    key = bf.load_validators([7], explorer=opened)["pubkey"].item()

    by_key = bf.load_income_history([key, 9], since=10, until=300, explorer=opened)

    assert_frame_equal(by_key, bf.load_income_history([7, 9], since=10, until=300, explorer=opened))


MANY = {
    "rewards of V2": lambda e: bf.v2.load_rewards(range(250), since=100, until=109, explorer=e),
    "blocks of producers": lambda e: bf.load_produced_blocks(range(250), explorer=e),
    "blocks of V2": lambda e: bf.v2.load_block_rewards(range(5000, 5049), explorer=e),
    "duties of V2": lambda e: bf.v2.load_slot_sync_committee_duties(range(32, 64), explorer=e),
    "windows": LOADS["windows"],
    "withdrawals": LOADS["withdrawals"],
    "slot withdrawals": LOADS["slot withdrawals"],
    "committees": LOADS["committees"],
}


@pytest.mark.parametrize("name", MANY)
def test_one_query_finds_the_rows_of_many_calls(opened, monkeypatch, name):
    """F1: calls that differ only in validators, epochs or slots are answered together."""
    queries, real = [], answers.select_rows
    monkeypatch.setattr(
        answers, "select_rows", lambda *args: queries.append(len(args[1])) or real(*args)
    )

    rows = MANY[name](opened)

    assert not rows.is_empty()
    assert 1 == len(queries)
    assert queries[0] > 1
    assert 0 == opened.requests


def test_a_set_of_any_size_is_answered_as_one(opened, served):
    """A service limits the validators of a request; files do not."""
    load = bf.v2.load_performance_aggregate
    columns = ["attestations_assigned", "sync_committee_assigned", "proposals_assigned"]
    with pytest.raises(UsageError, match="150 validators are more than the 100 of one request"):
        load(range(150), explorer=served)

    whole = load(range(150), explorer=opened)

    parts = [load(part, explorer=opened) for part in (range(100), range(100, 150))]
    assert pl.concat(parts).select(pl.col(columns).sum()).equals(whole.select(columns))
    assert whole["attestations_assigned"].item() > 0


@pytest.mark.more
def test_a_sum_of_many_validators_is_that_of_its_parts(opened):
    """Amounts add up."""
    rows = bf.v2.load_rewards_aggregate(range(150), "24h", explorer=opened)

    parts = [
        bf.v2.load_rewards_aggregate(part, "24h", explorer=opened)["total_wei"].item()
        for part in (range(100), range(100, 150))
    ]
    assert [sum(parts)] == rows["total_wei"].to_list()


def test_a_plan_states_no_requests(opened):
    """A load from files sends no request, so no limit of requests stops it."""
    plan = bf.plan(bf.load_income_history, range(500), since=0, explorer=opened)

    assert 0 == plan.requests
    assert (
        200
        == bf.load_balance_history(
            range(2), since=100, until=199, explorer=opened, max_requests=0
        ).height
    )


def test_loaders_use_it_until_it_is_closed(chain):
    """Like `bf.local`: the previous explorer is used again afterwards."""
    with bf.open(chain) as outer:
        with bf.open(chain.path, frame="pandas") as inner:
            assert "pandas" in type(bf.load_epochs()).__module__
        assert 1 == bf.load_epochs().height
        assert "open" in outer._repr_html_()

    assert str(chain.path) in repr(outer)
    with pytest.raises(UsageError, match="is closed"):
        bf.load_epochs(explorer=inner)


def test_a_folder_that_is_not_a_dataset(tmp_path):
    """The error names the folder."""
    with pytest.raises(DatasetError, match=str(tmp_path)):
        bf.open(tmp_path)


@pytest.mark.parametrize("kind", ["income", "days"])
def test_requests_do_not_read_the_ledger_again(opened, monkeypatch, kind):
    """A report of 10,000 validators has 12,000 requests, and reading the ledger takes 1 ms."""
    loads = {
        "income": lambda: bf.load_income_history([1, 2], since=250, until=251, explorer=opened),
        "days": lambda: bf.load_validator_stats(range(4), since=0, until=1, explorer=opened),
    }
    expected, read = loads[kind](), []
    real = ledger.get_meta
    monkeypatch.setattr(
        ledger, "get_meta", lambda *args, **more: read.append(1) or real(*args, **more)
    )

    assert_frame_equal(expected, loads[kind]())
    assert [] == read


def test_a_load_reads_only_the_files_of_its_epochs(tmp_path):
    """A file whose statistics exclude the epochs is not decoded: this one has no valid data."""
    grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
    dataset = small.create(tmp_path / "data", validators=small.validators(range(3)))
    for epochs in (range(50), range(50, 100)):
        rows = small.balances(small.cells(range(3), epochs))
        covered = {str(index): ((epochs[0], epochs[-1]),) for index in range(3)}
        with dataset.writing() as writer:
            writer.add_covered("balance_history", rows, grid, covered)
    first, _ = sorted(dataset.segments("balance_history"), key=lambda segment: segment.path)
    file = dataset.path / first.path
    with file.open("r+b") as damaged:
        damaged.seek(4)
        damaged.write(bytes(200))

    with bf.open(dataset):
        found = bf.load_balance_history([0, 2], since=50, until=99)
        with pytest.raises(DatasetError, match=f"{first.path} does not have the content"):
            bf.load_balance_history([0, 2], since=0, until=99)

    assert 100 == found.height


def test_a_period_without_a_committee_is_missing(opened):
    """One unknown period does not lose the committees of the others."""
    with pytest.warns(bf.MissingRows, match="period 50"):
        rows = bf.load_sync_committees([0, 50], explorer=opened)
    assert {0} == set(rows["period"])


def test_a_folder_with_a_bracket_is_opened(chain, tmp_path):
    """The path is no pattern; most readers of polars take it for one."""
    folder = tmp_path / "my [staking] data"
    shutil.copytree(chain.path, folder)
    with bf.open(folder) as opened:
        rows = bf.load_income_history([1, 2], since=300, until=309, explorer=opened)
    assert 20 == rows.height
    bf.export(rows, folder / "export")
    assert 20 == Dataset.open(folder / "export").scan("income_history").collect().height


def test_blocks_of_a_recipient_are_all_that_name_it(opened, chain):
    """An address is in the texts of blocks, so no index of a proposer finds them."""
    columns = "fee_recipient", "relay_producer_fee_recipient"
    blocks = chain.scan("execution_blocks").collect()
    address = blocks["fee_recipient"].mode()[0]
    names_it = pl.any_horizontal(pl.col(name) == address for name in columns)

    found = bf.load_produced_blocks(address, explorer=opened)

    assert {*found["block_number"]} == {*blocks.filter(names_it)["block_number"]}
    assert not found.is_empty()
