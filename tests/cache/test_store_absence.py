"""Absence in the store: rows that a response left out are requested again, until it is certain."""

from __future__ import annotations

import json
import re
import time
import warnings
from types import SimpleNamespace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors, v1, v2
from beaconframes.active_periods import FAR
from beaconframes.cache import local_store, validator_epochs
from beaconframes.cache.local_store import LocalStore
from beaconframes.cache.read_through import find_last_slot
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Grid
from beaconframes.endpoint.cache_policy import CachePolicy

from ..support.faults import FAULTS, FaultServer, changed_rows
from ..support.store_loads import FINAL, load_counted


@pytest.fixture
def faulty(server):
    """A server with faults, in front of the local explorer."""
    with FaultServer(upstream=server.url) as running:
        yield running


@pytest.fixture
def explorer(server, faulty, tmp_path):
    """An explorer with a new store."""
    with bf.Explorer(
        faulty.url, chain=server.service.chain, store=tmp_path / "store", rate=10_000
    ) as connected:
        yield connected


def count_data_requests(faulty, call):
    """Return the rows of *call*, and how many requests it sends, except for head and epochs."""
    seen = len(faulty.seen)
    rows = call()
    targets = [one.target for one in faulty.seen[seen:]]
    others = re.compile(r"/api/v1/(latestState|validator/[\d,]+)")
    return rows, sum(not others.fullmatch(target) for target in targets)


def income(explorer, since, until):
    """Load the income of a few validators."""
    return bf.load_income_history(range(5), since=since, until=until, explorer=explorer)


class TestHoles:
    """A table with one row per unit has no holes, so the store has none."""

    def test_tables_with_one_row_per_unit_declare_it(self):
        """G3: a stored table with one row per unit, or per validator and unit, is contiguous."""
        undeclared = []
        for endpoint in (*v1.ENDPOINTS, *v2.ENDPOINTS):
            policy = CachePolicy.of(endpoint)
            if policy is None or endpoint.is_contiguous:
                continue
            if not getattr(policy.subject, "required", True):
                continue  # Events: most units have none.
            columns = {policy.unit_column, policy.subject_column}
            if policy.subject is not None and policy.subject.pubkey_column is not None:
                columns.add(policy.subject.pubkey_column.name)
            if set(endpoint.table.key()) <= columns:
                undeclared.append((endpoint.envelope, endpoint.name))

        assert [] == undeclared
        assert v1.INCOME_HISTORY.is_contiguous
        assert all(e.is_contiguous for e in (v2.REWARDS, v2.PERFORMANCE, v2.BALANCES, v2.SLOT))

    def test_hole_is_requested_again(self, faulty, explorer):
        """G3: a row of income that is missing between two rows is an error, and is not stored."""
        faulty.fault("rows_lack?fields=epoch&cells=240&path=incomedetail")
        with pytest.raises(errors.IntegrityError, match="240"):
            income(explorer, 230, 249)
        faulty.fault("")

        rows, requests = count_data_requests(faulty, lambda: income(explorer, 230, 249))
        assert (100, 1) == (rows.height, requests)
        assert 0 == count_data_requests(faulty, lambda: income(explorer, 230, 249))[1]

    def test_stored_hole_is_requested_again(self, faulty, explorer):
        """G3: a hole that an earlier version stored as absent is requested again."""
        income(explorer, 230, 239)
        income(explorer, 241, 249)
        grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
        nothing = v1.INCOME_HISTORY.table.empty()
        assert explorer.local_store.put(
            "income_history", nothing, grid, {"2": ((240, 240),), "3": ((240, 240),)}, 467
        )

        rows, requests = count_data_requests(faulty, lambda: income(explorer, 230, 249))
        assert (100, 2) == (rows.height, requests)
        assert 0 == count_data_requests(faulty, lambda: income(explorer, 230, 249))[1]

    @pytest.mark.parametrize("lazy", [False, True])
    def test_stored_hole_of_all_validators_is_requested_again(self, faulty, explorer, lazy):
        """The stored rows of a load with nothing left to request are read once, also then."""
        income(explorer, 230, 239)
        income(explorer, 241, 249)
        grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
        nothing = v1.INCOME_HISTORY.table.empty()
        holes = {str(index): ((240, 240),) for index in range(5)}
        assert explorer.local_store.put("income_history", nothing, grid, holes, 467)

        rows, requests = count_data_requests(
            faulty,
            lambda: bf.load_income_history(
                range(5), since=230, until=249, explorer=explorer, lazy=lazy
            ),
        )
        assert (100, 1) == (rows.lazy().collect().height, requests)


EVENTS = {
    "slot/": lambda e: bf.load_slot_withdrawals([3200, 3202], explorer=e),
    "proposals": lambda e: bf.load_proposals(range(90), since=100, until=150, explorer=e),
    "graffitiwall": lambda e: bf.load_graffiti_wall(since=3200, until=4200, explorer=e),
    "slot/withdrawals": lambda e: bf.v2.load_slot_withdrawals([3200], explorer=e),
}


class TestEmptyResponses:
    """A response without rows is believed only if it is confirmed."""

    @pytest.mark.more
    @pytest.mark.parametrize(
        "path",
        [
            "slot/",
            "proposals",
            *(pytest.param(p, marks=pytest.mark.more) for p in list(EVENTS)[2:]),
        ],
    )
    def test_one_empty_response_is_not_stored(self, faulty, explorer, path):
        """G4: one empty response does not hide rows from later loads."""
        faulty.fault(f"rows_empty?path={path}")
        assert EVENTS[path](explorer).is_empty()
        faulty.fault("")

        rows, requests = count_data_requests(faulty, lambda: EVENTS[path](explorer))
        assert rows.height > 0 < requests
        assert 0 == count_data_requests(faulty, lambda: EVENTS[path](explorer))[1]

    @pytest.mark.more
    @pytest.mark.parametrize("name", ["proposals", "validator_withdrawals"])
    @pytest.mark.parametrize("epoch", [299, 350])
    def test_one_empty_window_is_not_stored(self, faulty, explorer, server, name, epoch):
        """G4: an empty window is requested again, although the next one has some of its epochs.

        A window is the last 100 or 101 epochs before its end, so the second one of 151 epochs
        reaches into the first one.
        """
        end = epoch + (epoch == 299 and name == "proposals")
        load = getattr(bf, f"load_{name}")
        call = lambda e: load(range(60), since=200, until=350, explorer=e)  # noqa: E731
        expected = load_counted(server, False, call).rows
        faulty.fault(f"rows_empty?path=epoch={end}")
        assert call(explorer).height < expected.height
        faulty.fault("")

        assert_frame_equal(expected, call(explorer))

    def test_second_empty_response_is_stored(self, faulty, explorer, monkeypatch):
        """G4: a second empty response counts if it comes later; then absence is stored."""

        def load():
            slots = [3200, 3201, 3204]
            return count_data_requests(
                faulty, lambda: bf.load_voluntary_exits(slots, explorer=explorer)
            )[1]

        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)
        assert [3, 3] == [load() for _ in range(2)]
        now += local_store.CONFIRMATION_SECONDS
        assert [3, 0] == [load() for _ in range(2)]

    def test_a_row_confirms_the_whole_response(self, faulty, explorer):
        """G4: validators without proposals beside others with proposals need one request."""
        rows, requests = count_data_requests(faulty, lambda: EVENTS["proposals"](explorer))
        assert rows["proposer_index"].n_unique() < 90
        assert 1 == requests
        assert 0 == count_data_requests(faulty, lambda: EVENTS["proposals"](explorer))[1]

    def test_offline(self, faulty, explorer):
        """Offline, one empty response counts, because no other can follow."""
        bf.load_voluntary_exits([3200, 3201], explorer=explorer)
        store, chain = explorer.local_store.path, explorer.chain
        with bf.Explorer(faulty.url, chain=chain, store=store, offline=True) as offline:
            assert bf.load_voluntary_exits([3200], explorer=offline, strict=True).is_empty()
            with pytest.raises(errors.MissingRows):
                bf.load_voluntary_exits([3200, 3204], explorer=offline, strict=True)

    def test_parts_of_noted_intervals(self, tmp_path, monkeypatch):
        """G4: only units that both responses requested are confirmed; the others stay noted."""
        store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
        nothing = pl.DataFrame(schema={"validator": pl.Int64, "epoch": pl.Int64})
        grid = Grid("validator", "epoch", ("validator", "epoch"))

        def put(at, **empty):
            monkeypatch.setattr(time, "time", lambda: at)
            empty = {name[1:]: intervals for name, intervals in empty.items()}
            assert store.put("proposals", nothing, grid, {}, 9, empty=empty)

        def read(find):
            return find("proposals", ["1", "2"], ((0, 99),))

        put(1_000, v1=((10, 19), (30, 39)), v2=((0, 9),))
        put(1_001, v1=((15, 34),))
        assert {} == read(store.coverage)
        put(1_600, v1=((0, 34),))
        assert {"1": ((10, 19), (30, 34))} == read(store.coverage)
        put(1_601, v1=((20, 24),), v2=((5, 5),))
        assert {"1": ((10, 24), (30, 34)), "2": ((5, 5),)} == read(store.coverage)
        assert {
            "1": ((0, 9), (25, 29), (35, 39)),
            "2": ((0, 4), (6, 9)),
        } == read(store.unconfirmed)


def test_a_clock_that_was_set_back_confirms(tmp_path, monkeypatch):
    """G4: units that were noted "in the future" are confirmed by the next response."""
    store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
    nothing = pl.DataFrame(schema={"validator": pl.Int64, "epoch": pl.Int64})
    grid = Grid("validator", "epoch", ("validator", "epoch"))
    for at in (10_000, 5_000):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        assert store.put("proposals", nothing, grid, {}, 9, empty={"1": ((3, 4),)})

    assert {"1": ((3, 4),)} == store.coverage("proposals", ["1"], ((0, 9),))


def test_a_validator_is_unknown_up_to_its_last_confirmed_epoch(tmp_path, monkeypatch):
    """A later load requests it again, because it may have been added since."""
    store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
    table, grid = validator_epochs.TABLE, validator_epochs.GRID
    nothing = pl.DataFrame(schema=validator_epochs.SCHEMA)
    for at in (1_000, 1_600):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        assert store.put(table, nothing, grid, {}, 9, empty={"7": ((0, 5),)})
    cache = validator_epochs.ValidatorEpochsCache(SimpleNamespace(local_store=store))

    found = {until: cache.known([7, 8], until)["validator_index"].to_list() for until in range(8)}

    assert {until: [7] if until <= 5 else [] for until in range(8)} == found


def test_a_validator_that_was_known_is_never_unknown(monkeypatch):
    """A later response that omits it says nothing about it."""
    explorer = SimpleNamespace(local_store=None, offline=False, chain_head=None)
    cache = validator_epochs.ValidatorEpochsCache(explorer)
    returned = iter([[1, 2], [1]])
    monkeypatch.setattr(validator_epochs, "current_epoch", lambda _: 5)
    monkeypatch.setattr(
        cache,
        "_fetch",
        lambda _: pl.DataFrame({"validator_index": next(returned)}).with_columns(status=pl.lit("")),
    )
    cache.load([1, 2], 5)

    _, answered = cache.load([1, 2], 6)

    assert {1} == set(answered)


def index_of(row):
    """Return the validator of *row*, in either spelling."""
    return row.get("validatorindex", row.get("validator_index"))


def only_early(rows, p):
    """Return the rows before epoch 248; of rows without an epoch, those of validator 0."""
    return [row for row in rows if row.get("epoch", 248 * index_of(row)) < 248]


def only_first(rows, p):
    """Return the rows of validators 0, 1 and 2."""
    return [row for row in rows if index_of(row) < 3]


def only_first_proposers(rows, p):
    """Return the blocks that validators 0, 1 and 2 had to propose."""
    return [row for row in rows if row["proposer"] < 3]


def with_slot(rows, p):
    """Return the blocks, and one of epoch 100 a second time, in another slot."""
    return [*rows, next(row for row in rows if row["epoch"] == 100) | {"slot": int(p["slot"])}]


NOT_CHECKED = "epoch_slots not stored"


class TestTruncatedResponses:
    """A service that omits rows and validators hides nothing from later loads."""

    @pytest.fixture(autouse=True)
    def faults(self, monkeypatch):
        """Add faults that omit rows and validators."""
        monkeypatch.setitem(FAULTS, "early", changed_rows(only_early))
        monkeypatch.setitem(FAULTS, "first", changed_rows(only_first))
        monkeypatch.setitem(FAULTS, "first_proposers", changed_rows(only_first_proposers))
        monkeypatch.setitem(FAULTS, "proposes_also", changed_rows(with_slot))

    @pytest.mark.more
    def test_validator_with_rows_is_never_unknown(self, faulty, explorer, later):
        """G4: a validator with rows is known, although the list of validators omits it."""
        for _ in range(3):
            faulty.fault("early?path=/validator/")
            with pytest.warns(errors.MissingRows, match="missing rows: 5 validators"):
                assert 5 * 18 == income(explorer, 230, 249).height
            assert {"not returned by the service"} == {*bf.missing()["reason"]}
            later()
        faulty.fault("")
        assert 5 * 20 == income(explorer, 230, 249).height

    def test_validator_with_stored_rows_is_not_stored_as_unknown(self, faulty, explorer, later):
        """G4: no response makes a validator unknown whose earlier rows are stored."""
        income(explorer, 220, 229)
        faulty.fault("first?path=/validator/")
        for _ in range(3):
            with pytest.warns(errors.MissingRows):
                assert 3 * 10 == income(explorer, 230, 239).height
            later()
        faulty.fault("")
        assert 5 * 10 == income(explorer, 230, 239).height

    def test_one_response_does_not_make_a_validator_unknown(self, server, faulty, explorer, later):
        """G4: a validator that one response omits is requested by later loads and explorers."""
        faulty.fault("first?path=/validator/")
        with pytest.warns(errors.MissingRows, match=r"unknown to the service \(3, 4\)"):
            assert 3 * 10 == income(explorer, 230, 239).height
        # The same explorer does not request the validators twice within ten minutes.
        with pytest.warns(errors.MissingRows):
            income(explorer, 220, 229)
        assert 1 == sum(one.target == "/api/v1/validator/0,3,4" for one in faulty.seen)
        faulty.fault("")

        options = {"chain": explorer.chain, "store": explorer.local_store.path, "rate": 10_000}
        with bf.Explorer(faulty.url, **options) as another:
            assert 5 * 20 == income(another, 220, 239).height

    def test_proposals_that_were_left_out_are_found(self, server, faulty, explorer):
        """G4: the slots of the same epochs show which stored proposals are wrong."""
        truth = load_counted(server, False, EVENTS["proposals"]).rows
        found = pl.col("proposer_index") < 3
        faulty.fault("first_proposers?path=/proposals")
        assert_frame_equal(truth.filter(found), EVENTS["proposals"](explorer))
        faulty.fault("")
        store = bf.store(explorer)
        sent = len(faulty.seen)
        assert [(NOT_CHECKED, None, 100, 150)] == store.check().rows()
        assert sent == len(faulty.seen)

        bf.load_epoch_slots(since=144, until=151, explorer=explorer)
        checked, is_checked = store.check(), pl.col("epoch") >= 144
        wrong = truth.filter(~found, is_checked)
        expected = wrong.select("proposer_index", "epoch", last="epoch").unique().sort("epoch")
        assert wrong.height > 5
        assert (NOT_CHECKED, None, 100, 143) == checked.row(-1)
        differing = checked.filter(finding="differs from epoch_slots").drop("finding")
        assert sorted(expected.rows()) == differing.rows()

        store.prune("proposals", differing["validator_index"], first=144, last=150)
        assert [(NOT_CHECKED, None, 100, 143)] == store.check().rows()
        assert_frame_equal(truth.filter(found | is_checked), EVENTS["proposals"](explorer))

    def test_a_proposal_that_no_slot_has_is_found(self, faulty, explorer):
        """G4: a slot that another validator had to propose is not of this one."""
        load = lambda: bf.load_proposals(range(90), since=100, until=100, explorer=explorer)  # noqa: E731
        assert bf.store(explorer).check().is_empty()
        bf.load_epoch_slots(since=100, until=100, explorer=explorer)
        assert bf.store(explorer).check().is_empty()
        other = 3200 + (5 if 3205 not in load()["slot"] else 6)
        bf.store(explorer).prune("proposals")

        faulty.fault(f"proposes_also?slot={other}&path=/proposals")
        (index,) = load().filter(slot=other)["proposer_index"]
        assert [("differs from epoch_slots", index, 100, 100)] == bf.store(explorer).check().rows()

    def test_one_response_explains_no_gap_for_ever(self, server, faulty, explorer):
        """G4: a validator that one response omits is not unknown to another connection."""
        late, options = 1007, {"chain": server.service.chain, "rate": 10_000}
        faulty.fault("first?path=/validator/")
        with pytest.warns(errors.MissingRows, match=rf"unknown to the service \({late}\)"):
            bf.load_balance_history([1, late], since=300, until=360, explorer=explorer)
        faulty.fault("")

        with bf.Explorer(faulty.url, store=explorer.local_store.path, **options) as another:
            rows = bf.load_balance_history([1, late], since=300, until=360, explorer=another)
        assert 61 < rows.height < 122

    def test_days_of_the_chain_are_never_absent(self, faulty, explorer, later):
        """G4: a day that has ended has a yield index, however often the service omits it."""
        for _ in range(3):
            faulty.fault("rows_empty?path=/yieldindex/0")
            with pytest.warns(errors.MissingRows):
                rows = bf.load_yield_index(since=0, until=1, explorer=explorer)
            assert [1] == rows["day"].to_list()
            later()
        faulty.fault("")
        assert 2 == bf.load_yield_index(since=0, until=1, explorer=explorer).height


def test_response_without_any_row_is_not_stored(faulty, explorer):
    """G4: if no response has any row, their absence is not stored."""
    slots = [3200, 3202]
    faulty.fault("rows_empty?path=/slot/")
    with pytest.warns(errors.MissingRows):
        assert bf.load_slots(slots, explorer=explorer).is_empty()
    faulty.fault("")

    assert slots == bf.load_slots(slots, explorer=explorer)["slot"].to_list()


def test_running_day_is_not_final():
    """A day is final when its last epoch is: with 225 epochs a day, from epoch 224 on."""
    chain_head = SimpleNamespace(chain=MAINNET)
    for endpoint in (v1.VALIDATOR_STATS, v1.YIELD_INDEX):
        policy = CachePolicy.of(endpoint)
        last = {epoch: policy.final_until(chain_head, epoch) for epoch in (223, 224, 448, 449)}
        assert {223: -1, 224: 0, 448: 0, 449: 1} == last


def test_a_sync_committee_is_final_one_period_before_it_starts():
    """With 256 epochs a period, epoch 255 decides on period 1, and epoch 256 on period 2."""
    chain_head = SimpleNamespace(chain=MAINNET)
    policy = CachePolicy.of(v1.SYNC_COMMITTEES)
    last = {epoch: policy.final_until(chain_head, epoch) for epoch in (-1, 0, 255, 256)}
    assert {-1: -1, 0: 1, 255: 1, 256: 2} == last


@pytest.mark.parametrize(
    ("path", "load", "rows"),
    [
        (
            "v2/ethereum/slot",
            lambda e: bf.v2.load_rewards(range(3), since=9, until=9, explorer=e),
            3,
        ),
        ("latestState", lambda e: bf.load_balance_history([1], since=9, until=10, explorer=e), 2),
    ],
)
@pytest.mark.parametrize("code", [404, pytest.param(405, marks=pytest.mark.more)])
def test_service_without_the_route_of_finality(faulty, explorer, path, load, rows, code):
    """C4: without the route that states the final epoch, rows are loaded and not stored."""
    faulty.fault(f"status?code={code}&path={path}")
    for _ in range(2):
        assert rows == load(explorer).height
    assert explorer.local_store.dataset is None

    faulty.fault("")
    assert rows == load(explorer).height
    assert 0 == count_data_requests(faulty, lambda: load(explorer))[1]


def test_a_load_that_the_store_answers_reads_its_rows_once(explorer, server, monkeypatch):
    """F7: checks and result use the same rows, also if a validator was not active yet."""
    late = server.service.dataset.scan("validators").filter(pl.col("activation_epoch") > 1)
    row = late.sort("activation_epoch").head(1).collect()
    since, validator = row["activation_epoch"][0] - 2, row["validator_index"][0]
    wanted = {"since": since, "until": since + 3, "explorer": explorer}
    first = bf.load_income_history([0, validator], **wanted)
    read = []
    select = LocalStore.select

    def count(store, table, *others):
        read.append(table)
        return select(store, table, *others)

    monkeypatch.setattr(LocalStore, "select", count)
    again = bf.load_income_history([0, validator], **wanted)

    assert first.equals(again)
    assert 6 == first.height
    assert 1 == read.count("income_history")


@pytest.fixture
def late_validator(chain):
    """A validator that was activated in the middle of the chain, and its first epoch."""
    first = pl.col("activation_epoch")
    rows = chain.scan("validators").filter(first.is_between(20, 300)).collect()
    return rows["validator_index"][0], rows["activation_epoch"][0]


@pytest.mark.more
@pytest.mark.parametrize("beside", [[], [5]])
def test_epochs_before_the_activation_are_requested_once(server, store, late_validator, beside):
    """G1: epochs before the activation are not missing, and are requested once."""
    validator, first = late_validator
    call = lambda e: bf.load_income_history(  # noqa: E731
        [validator, *beside], since=0, until=first + 10, explorer=e
    )
    plain = load_counted(server, False, call)
    found, second = (load_counted(server, store, call) for _ in range(2))

    assert 0 == second.requests
    assert_frame_equal(plain.rows, second.rows)
    assert [] == plain.warnings == found.warnings == second.warnings
    assert first == second.rows.filter(validator_index=validator)["epoch"].min()


def load_until_confirmed(server, store, call, later):
    """Return the third counted load; the first two send requests, and confirm each other."""
    for _ in range(2):
        later()
        assert 0 < load_counted(server, store, call).requests
    later()
    return load_counted(server, store, call)


def test_an_unknown_validator_is_requested_by_two_loads(server, store, later):
    """An unknown validator has no rows; two loads show that, and no later one requests it."""
    call = lambda e: bf.load_income_history([5, 999_999], since=9, until=40, explorer=e)  # noqa: E731
    third = load_until_confirmed(server, store, call, later)

    assert (0, 32, 1) == (third.requests, third.rows.height, len(third.warnings))
    assert "unknown to the service (999999)" in str(third.warnings[0])


def test_a_slot_without_a_block_is_requested_by_two_loads(server, store, chain, later):
    """A slot without a block is requested by two loads."""
    missed = chain.scan("blocks").filter(status="missed").head(4).collect()["slot"].to_list()
    call = lambda e: bf.load_slots([*missed, 3200], explorer=e)  # noqa: E731
    third = load_until_confirmed(server, store, call, later)

    assert (0, 1, 1) == (third.requests, third.rows.height, len(third.warnings))


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("validator", lambda e: bf.load_income_history(101, since=9, until=9, explorer=e)),
        ("slot", lambda e: bf.load_slots([3200, 3201], explorer=e)),
    ],
)
def test_a_service_without_any_rows_is_no_evidence(server, store, path, call):
    """If nothing is received, not even from another table, no absence is stored."""
    expected = load_counted(server, False, call).rows
    with FaultServer(f"rows_empty?path=/{path}", upstream=server.url) as silent:
        options = {"chain": server.service.chain, "store": store, "rate": 10_000}
        with bf.Explorer(silent.url, **options) as explorer:
            with pytest.warns(errors.MissingRows):
                assert call(explorer).is_empty()
            silent.fault("")
            found = call(explorer)

    assert_frame_equal(expected, found)
    assert expected.height > 0


def test_recent_final_epochs_without_rows_are_requested_again(server, store):
    """Recent final epochs without rows are requested again, since rows may follow."""
    with FaultServer(
        "rows_lack?fields=epoch&cells=466,467&path=/income", upstream=server.url
    ) as late:
        call = lambda e: bf.load_income_history([5, 6], since=400, until=FINAL, explorer=e)  # noqa: E731
        explorer = bf.Explorer(late.url, chain=server.service.chain, store=store, rate=10_000)
        with pytest.warns(errors.MissingRows, match="epoch 466 to 467"):
            assert 2 * 66 == call(explorer).height
        late.fault("")
        assert 2 * 68 == call(explorer).height
        explorer.close()


def change_response(change):
    """Return the fault that responds with *change* of the whole response."""

    def respond(connection, seen, good, p):
        connection.respond(200, json.dumps(change(json.loads(good), p)).encode())

    return respond


def end_early(response, p):
    """Return the response with a range of slots that ends early, and the rows in it."""
    end = int(p["last"])
    response["data"] = [row for row in response["data"] if row["slot"] <= end]
    response["range"]["slot"]["end"] = end
    return response


def schedule_last(rows, p):
    """Return the rows with the last slot of the epoch still scheduled."""
    last = max(row["slot"] for row in rows)
    scheduled = {"status": "0", "blockroot": "0x00"}
    return [row | scheduled if row["slot"] == last else row for row in rows]


LAGGING = {
    "withdrawals": (
        changed_rows(lambda rows, p: [row for row in rows if row["epoch"] <= 455]),
        lambda e: bf.load_validator_withdrawals(range(100), since=370, until=FINAL, explorer=e),
    ),
    "proposals": (
        changed_rows(lambda rows, p: [row for row in rows if row["epoch"] <= 455]),
        lambda e: bf.load_proposals(range(90), since=370, until=FINAL, explorer=e),
    ),
    "graffitiwall": (
        changed_rows(lambda rows, p: sorted(rows, key=lambda row: row["slot"])[:-200]),
        lambda e: bf.load_graffiti_wall(since=250 * 32, until=FINAL * 32, explorer=e),
    ),
    "proposal-slots": (
        change_response(end_early),
        # So few that each page has some of them: a list with an empty page is requested again.
        lambda e: bf.v2.load_proposal_slots(range(50), since=145 * 32, until=153 * 32, explorer=e),
    ),
    "slots": (
        changed_rows(schedule_last),
        lambda e: bf.load_epoch_slots(since=400, until=400, explorer=e),
    ),
    "/epoch/": (
        changed_rows(lambda rows, p: [row | {"scheduledblocks": 3} for row in rows]),
        lambda e: bf.load_epochs(since=400, until=400, explorer=e),
    ),
}


@pytest.mark.more
@pytest.mark.parametrize("path", LAGGING)
def test_a_service_that_lags_hides_no_rows(server, faulty, explorer, monkeypatch, path):
    """G4: it states that an epoch is final, but has not processed it; later it has.

    What a response does not show is requested again: the newest events of validators, slots after
    the stated range, and epochs with slots that are still scheduled.
    """
    respond, call = LAGGING[path]
    truth = load_counted(server, False, call).rows
    monkeypatch.setitem(FAULTS, "lag", respond)
    faulty.fault(f"lag?path={path}&last={150 * 32}")
    early = call_without_warnings(explorer, call)
    faulty.fault("")

    rows, requests = count_data_requests(faulty, lambda: call(explorer))

    assert not early.equals(truth)
    assert requests > 0
    assert_frame_equal(truth, rows)


def call_without_warnings(explorer, call):
    """Return the rows of *call*; it may warn that some are missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MissingRows)
        return call(explorer)


@pytest.mark.parametrize(
    ("ranges", "last"),
    [
        ([], FAR),
        ([b"null", b"[]", b'"all"', b"7", b"{}"], FAR),
        ([b'{"slot": null}', b'{"slot": 5}', b'{"slot": {}}', b'{"slot": {"end": "9"}}'], FAR),
        ([b'{"slot": {"end": 9}}', b'{"slot": {"end": 7}}', b'{"epoch": {"end": 1}}'], 7),
    ],
)
def test_the_last_slot_of_ranges_in_any_form(ranges, last):
    """A service may send anything as the range of a response."""
    assert last == find_last_slot(ranges)
