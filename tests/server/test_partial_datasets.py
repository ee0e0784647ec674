"""What a served dataset does not cover is missing: not unknown, not zero, and no contradiction."""

from __future__ import annotations

import json

import httpx
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.beacon_node.tables.operations import BlobCommitments
from beaconframes.dataset import Dataset, Grid
from beaconframes.endpoint.uncovered import MAX_HEADER, encode_uncovered, parse_uncovered
from beaconframes.v1._blocks import Blocks
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.epochs import Epochs
from beaconframes.v1.execution_blocks import ExecutionBlocks
from beaconframes.v1.income_history import IncomeHistory
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validator_stats import ValidatorStats

from ..support import small_dataset as small

NOT_IN_DATASET = "not in the dataset"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Validators 1 to 3 in epochs 50 to 99, and slots of these epochs."""
    cells = small.cells(range(1, 4), range(50, 100))
    grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
    covered = {str(index): ((50, 99),) for index in range(1, 4)}
    by_slot, by_epoch = (Grid(None, unit, (unit,)) for unit in ("block_slot", "epoch"))
    slots, epochs = {"": ((400, 799),)}, {"": ((50, 99),)}
    return small.create(
        tmp_path_factory.mktemp("partial") / "data",
        attestations=(small.duties(cells), grid, covered),
        balance_history=(small.balances(cells), grid, covered),
        validators=small.validators(range(1, 4)),
        slot_withdrawals=(SlotWithdrawals.empty(), by_slot, slots),
        epochs=(epoch_rows(range(50, 100)), by_epoch, epochs),
        bls_changes=(BlsChanges.empty(), by_epoch, {"": ((50, 157),)}),
        blocks=(Blocks.empty(), by_epoch, epochs),
    )


def epoch_rows(numbers):
    """Return epochs whose other columns are zero."""
    rows = pl.DataFrame({"epoch": list(numbers)}, schema={"epoch": pl.Int64})
    zeros = {name: pl.lit(0) for name in Epochs.schema() if name not in ("epoch", "time")}
    return small.fit(Epochs, rows.with_columns(**zeros))


@pytest.fixture(scope="module", params=["spec", "public", "opened"])
def local(request, dataset):
    """The dataset, served on either wire, or read without a server."""
    if request.param == "opened":
        with bf.open(dataset) as opened:
            yield opened
    else:
        with bf.local(dataset, wire=request.param) as local:
            yield local


@pytest.fixture
def explorer(local):
    """The explorer of that server, or of that dataset."""
    return getattr(local, "explorer", local)


@pytest.mark.parametrize("load", [bf.load_balance_history, bf.load_attestations])
def test_epochs_and_validators_that_are_not_covered_are_missing(explorer, load):
    """Row 6: each gap has the reason, and the covered rows are returned."""
    with pytest.warns(bf.MissingRows, match="1 not in the dataset"):
        found = load([1, 7], since=40, until=60, explorer=explorer)

    assert [(1, epoch) for epoch in range(50, 61)] == found.select(
        "validator_index", "epoch"
    ).rows()
    assert [(1, 40, 49, NOT_IN_DATASET), (7, 40, 60, NOT_IN_DATASET)] == bf.missing().rows()


@pytest.mark.filterwarnings("error")
def test_covered_rows_load_without_a_warning(explorer):
    """Coverage of another part of the table changes nothing."""
    found = bf.load_balance_history([1, 2, 3], since=50, until=99, explorer=explorer)
    empty = bf.load_slot_withdrawals(range(400, 404), explorer=explorer)

    assert (150, 0) == (found.height, empty.height)
    assert bf.missing().is_empty()


def test_a_missing_row_inside_the_coverage_is_still_a_contradiction(tmp_path):
    """Coverage says that the epoch is complete, so a hole is an error."""
    cells = small.cells([1], range(160)).filter(pl.col("epoch") != 70)
    grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
    dataset = small.create(
        tmp_path / "data",
        balance_history=(small.balances(cells), grid, {"1": ((60, 99),)}),
        validators=small.validators([1]),
    )
    with bf.local(dataset), pytest.raises(bf.errors.IntegrityError, match="epoch 70") as caught:
        bf.load_balance_history(1, since=50, until=80)

    reasons = caught.value.missing.select("first_epoch", "last_epoch", "reason").rows()
    assert (50, 59, NOT_IN_DATASET) in reasons


def test_the_gaps_of_an_export_stay_missing(dataset, tmp_path):
    """The manifest of an export lists what its source did not have; it is not a contradiction."""
    folder = tmp_path / "export"
    with bf.local(dataset):
        bf.export(bf.load_balance_history, folder, validators=[1, 7], since=48, until=52)
    assert 2 == len(Dataset.open(folder).manifest["tables"]["balance_history"]["gaps"])

    with bf.local(folder), pytest.warns(bf.MissingRows):
        found = bf.load_balance_history([1, 7], since=48, until=52)

    assert [50, 51, 52] == found["epoch"].to_list()
    assert [(1, 48, 49, NOT_IN_DATASET), (7, 48, 52, NOT_IN_DATASET)] == bf.missing().rows()


def test_no_validator_is_unknown_to_a_dataset(explorer):
    """Row 6: a dataset of some validators cannot say which others exist."""
    with pytest.warns(bf.MissingRows, match=r"1 not in the dataset \(9\)"):
        found = bf.load_validators([1, 9], explorer=explorer)

    assert [1] == found["validator_index"].to_list()


def test_days_that_an_opened_dataset_does_not_have_are_missing(tmp_path):
    """Daily statistics have no coverage; without a service, no row is "not returned by" one."""
    days = pl.DataFrame({"validator_index": [1, 2, 2], "day": [2, 1, 2]})
    dataset = small.create(
        tmp_path / "data",
        meta={"latest_epoch": 16_300, "finalized_epoch": 16_298, "latest_slot": 8 * 16_300},
        validator_stats=small.fit(ValidatorStats, days),
        validators=small.validators(range(1, 3)),
    )

    with bf.open(dataset), pytest.warns(bf.MissingRows, match=NOT_IN_DATASET):
        found = bf.load_validator_stats([1, 2], since=0, until=2)

    assert [(1, 2), (2, 1), (2, 2)] == found.select("validator_index", "day").rows()
    assert [(1, 0, 1, NOT_IN_DATASET), (2, 0, 0, NOT_IN_DATASET)] == bf.missing().rows()


def test_events_of_slots_that_are_not_covered_are_missing(explorer):
    """Row 6: a slot without withdrawals is complete; an uncovered one is not zero."""
    with pytest.warns(bf.MissingRows, match="block_slot 800") as caught:
        found = bf.load_slot_withdrawals([799, 800], explorer=explorer)

    assert found.is_empty()
    assert 1 == len(caught)
    assert [(800, 800, NOT_IN_DATASET)] == bf.missing().rows()


def test_events_without_a_range_are_missing_for_epochs_that_are_not_covered(explorer):
    """Row 6: no change is known only of the epochs that the dataset has."""
    with pytest.warns(bf.MissingRows, match="epoch 0 to 49"):
        found = bf.load_bls_changes([1, 2], explorer=explorer)

    assert found.is_empty()
    assert [(0, 49, NOT_IN_DATASET)] == bf.missing().rows()


def test_slots_of_epochs_that_are_not_covered_are_missing(explorer):
    """Row 6: blocks that are covered by epoch are requested by slot, and by proposer."""
    with pytest.warns(bf.MissingRows):
        slots = bf.load_slots([399], explorer=explorer)
    assert [NOT_IN_DATASET] == bf.missing()["reason"].to_list()
    with pytest.warns(bf.MissingRows, match="epoch 40 to 49"):
        proposals = bf.load_proposals([1, 2], since=40, until=60, explorer=explorer)

    assert slots.is_empty()
    assert proposals.is_empty()


def test_epochs_that_are_not_covered_are_missing(explorer):
    """Row 6: an object that is not there is neither a bad request nor a contradiction."""
    with pytest.warns(bf.MissingRows, match="epoch 48 to 49"):
        found = bf.load_epochs(since=48, until=51, explorer=explorer)

    assert [50, 51] == found["epoch"].to_list()


@pytest.mark.parametrize(
    "load",
    [
        lambda: bf.load_slot_withdrawals([799, 800]),
        lambda: bf.load_balance_history([1, 7], since=98, until=101),
    ],
    ids=["events", "required rows"],
)
def test_a_store_does_not_hold_uncovered_units_as_empty(dataset, tmp_path, load):
    """The second load, from the store, reports the same gaps as the first."""
    gaps = []
    with bf.local(dataset, store=tmp_path / "store"):
        for _ in range(3):
            with pytest.warns(bf.MissingRows):
                load()
            gaps.append(bf.missing().rows())

    assert gaps[0] == gaps[1] == gaps[2] != []


@pytest.fixture(scope="module")
def rewarded(tmp_path_factory):
    """Validator 1 has the income of all final epochs, and 2 that from epoch 50 on."""
    cells = small.cells([1, 2], range(158)).filter(
        (pl.col("validator_index") == 1) | (pl.col("epoch") >= 50)
    )
    amounts = {name: 0 for name in IncomeHistory.schema() if name.endswith(("_gwei", "_wei"))}
    income = cells.with_columns(**{**amounts, "attestation_head_reward_gwei": 1})
    income = small.fit(IncomeHistory, income.with_columns(proposals_missed=0))
    grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
    covered = {"1": ((0, 157),), "2": ((50, 157),)}
    by_slot = Grid(None, "block_slot", ("block_slot",))
    return small.create(
        tmp_path_factory.mktemp("rewarded") / "data",
        income_history=(income, grid, covered),
        slot_withdrawals=(SlotWithdrawals.empty(), by_slot, {"": ((400, 1263),)}),
        blocks=Blocks.empty(),
        execution_blocks=ExecutionBlocks.empty(),
        validators=small.validators(),
    )


@pytest.mark.parametrize("connect", [bf.local, bf.open])
def test_v2_sums_nothing_that_is_not_covered(rewarded, connect):
    """Row 6: a sum over rows that are not covered would be too small, so it is an error."""
    with connect(rewarded):
        total = bf.v2.load_rewards_aggregate(1, window="all_time")
        for validators in ([2], [1, 2], [1, 7]):
            with pytest.raises(bf.errors.TableNotInDataset, match="income_history for a part"):
                bf.v2.load_rewards_aggregate(validators, window="all_time")

    assert [158 * 10**9] == total["attestation_head_reward_wei"].to_list()


@pytest.mark.parametrize("connect", [bf.local, bf.open])
def test_v2_slots_that_are_not_covered_are_not_empty(rewarded, connect):
    """Row 6: a range with slots that are not covered is an error; a covered one may be empty."""
    refused = pytest.raises(bf.errors.TableNotInDataset, match="slot_withdrawals for a part")
    with connect(rewarded):
        empty = bf.v2.load_withdrawal_slots(1, since=400, until=1263)
        slots = bf.v2.load_slot_withdrawals([400, 401])
        with refused:
            bf.v2.load_withdrawal_slots(1, since=399, until=1263)
        with refused:
            bf.v2.load_slot_withdrawals([400, 399])

    assert empty.is_empty()
    assert slots.is_empty()


@pytest.mark.parametrize("connect", [bf.local, bf.open])
def test_the_latest_epoch_always_has_a_record(rewarded, connect):
    """An answer without one is an error, and not an epoch without slots."""
    with connect(rewarded), pytest.raises(bf.errors.NotFound, match="no record, where there is"):
        bf.load_epoch_slots()


@pytest.mark.parametrize("local", ["spec", "public"], indirect=True)
def test_other_clients_get_an_error_for_an_uncovered_unit_and_a_header_for_a_range(local):
    """A slot that is not covered is not one without withdrawals; ranges stay as documented."""
    with httpx.Client(base_url=f"{local.url}/api/v1") as client:
        epoch, slot = client.get("/epoch/3"), client.get("/slot/3/withdrawals")
        covered_slot = client.get("/slot/400/withdrawals")
        rows = client.get("/validator/1,7/balancehistory", params={"latest_epoch": 60})
        covered = client.get("/validator/1")

    assert (404, 404) == (epoch.status_code, slot.status_code)
    assert (200, []) == (covered_slot.status_code, covered_slot.json()["data"])
    assert "this dataset does not have the requested rows" in epoch.text
    assert 11 == len(rows.json()["data"])
    expected = [[[[7, 7]], [[0, 159]]], [[[1, 1]], [[0, 49], [100, 159]]]]
    stated = rows.headers["x-beaconframes-uncovered"]
    assert sorted(expected) == sorted(json.loads(stated))
    assert {"7": ((0, 159),), "1": ((0, 49), (100, 159))} == parse_uncovered(stated)
    assert "x-beaconframes-uncovered" not in covered.headers


def test_a_long_header_states_all_units_together():
    """Many different gaps are stated as one that contains them, within the limit."""
    uncovered = {str(n): tuple((k * 10, k * 10 + n % 9) for k in range(99)) for n in range(100)}

    header = encode_uncovered(uncovered)

    assert len(header) <= MAX_HEADER
    stated = parse_uncovered(header)
    assert uncovered.keys() == stated.keys()
    (units,) = set(stated.values())
    assert (0, 988) == (units[0][0], units[-1][1])
    assert "" == encode_uncovered({})


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        "[[1]]",
        '[[[["a", 2]], []]]',
        "{}",
        "[[[[5, 3]], [[0, 9]]]]",
        # A list of these subjects would fill the memory.
        "[[[[0, 999999999999]], [[0, 9]]]]",
        f"[{','.join(['[[[0, 99]], [[0, 9]]]'] * 11)}]",
    ],
)
def test_an_invalid_header_states_nothing(header):
    """A service that sends nonsense changes no result."""
    assert {} == parse_uncovered(header)


@pytest.mark.parametrize("connect", [bf.local, bf.open])
@pytest.mark.parametrize(
    ("load", "gap"),
    [
        (lambda since: bf.load_income_history([1], since=since), "first_epoch"),
        (lambda since: bf.load_validator_withdrawals([1], since=since), "first_epoch"),
        (lambda since: bf.load_epochs(since=since), "first_epoch"),
        (lambda since: bf.load_slots([since * 32]), "slot"),
    ],
    ids=["required rows", "events", "epochs", "slots"],
)
def test_epochs_before_a_simulation_are_not_in_the_dataset(hoodi, connect, load, gap):
    """A simulation begins at some epoch; earlier ones are neither empty nor a contradiction."""
    first = hoodi.meta["first_epoch"]
    with connect(hoodi):
        with pytest.warns(bf.MissingRows, match=NOT_IN_DATASET):
            load(first - 2)
        missing = bf.missing().row(0, named=True)

    assert NOT_IN_DATASET == missing["reason"]
    assert first - 2 == (missing[gap] if gap == "first_epoch" else missing[gap] // 32)


def test_a_validator_that_exited_before_a_simulation_is_not_in_the_dataset(hoodi):
    """Its rows are no contradiction; an unknown validator is still unknown."""
    first = hoodi.meta["first_epoch"]
    with bf.open(hoodi) as opened, pytest.warns(bf.MissingRows) as caught:
        bf.load_income_history([1, 59_000], since=first - 5, until=first + 5, explorer=opened)

    assert "1 unknown to the service (59000)" in str(caught[0].message)
    assert f"epoch {first - 5} to {first - 1} (not in the dataset)" in str(caught[0].message)


def test_missing_rows_are_a_pandas_frame_if_the_setting_says_so(explorer):
    """Step 12, 7; a strict load raises the error, so its hint does not suggest to be strict."""
    with bf.settings(frame="pandas"), pytest.raises(bf.MissingRows) as raised:
        bf.load_balance_history([1, 7], since=40, until=60, explorer=explorer, strict=True)

    with bf.settings(frame="pandas"):
        listed = bf.missing()

    assert [1, 7] == listed["validator_index"].to_list()
    assert type(listed).__module__.startswith("pandas")
    assert str(raised.value).endswith("bf.missing() lists them")


def test_blobs_and_contracts_of_a_real_chain_are_known_or_null(tmp_path):
    """Each commitment is a blob of 131,072 gas (EIP-4844); who has code, an index does not know."""
    cells = pl.DataFrame({"slot": [8, 16, 24], "block_number": [1, 2, 3]}).with_columns(
        epoch=pl.col("slot") // 8, relay_producer_fee_recipient=pl.lit("0x" + "ab" * 20)
    )
    roots = pl.format("0x{}", pl.col("slot").cast(pl.String).str.zfill(64))
    blocks = cells.select(
        "slot", "epoch", block_root=roots, status=pl.lit("proposed"),
        exec_block_number="block_number",
    )  # fmt: skip
    blobs = pl.DataFrame({"block_slot": [8, 16], "block_root": blocks["block_root"][:2]})
    tables = {
        "execution_blocks": small.fit(ExecutionBlocks, cells),
        "blocks": small.fit(Blocks, blocks),
        "blob_commitments": small.fit(
            BlobCommitments, blobs.with_columns(commitments_count=pl.Series([3, 0]))
        ),
    }
    with bf.open(small.create(tmp_path / "data", **tables)):
        found = bf.v2.load_block([1, 2, 3]).sort("slot")
        rewards = bf.v2.load_block_rewards([1])

    assert [3 * 131_072, 0, None] == found["blob_gas_used"].to_list()
    assert [None, 0, None] == found["blob_transactions_count"].to_list()
    assert [None] * 3 == found["blob_gas_excess"].to_list()
    flags = rewards.select(pl.selectors.ends_with("_is_contract"))
    assert {None} == set(flags.row(0))


def test_the_first_epoch_of_a_simulation_is_covered():
    """The sample begins years after genesis: only the epochs before it are not in the dataset."""
    with bf.open() as sample:
        first = sample.views.current().first_epoch
        with pytest.warns(bf.MissingRows, match=f"epoch {first - 2} to {first - 1}"):
            rows = bf.load_income_history([1], since=first - 2, until=first)
        with pytest.warns(bf.MissingRows, match=f"epoch {first - 1}"):
            events = bf.load_validator_withdrawals([1], since=first - 1, until=first)
        gaps = bf.missing()

    assert [first] == rows["epoch"].to_list()
    assert events.filter(epoch=first - 1).is_empty()
    assert [(first - 1, first - 1)] == gaps.select("first_epoch", "last_epoch").rows()
