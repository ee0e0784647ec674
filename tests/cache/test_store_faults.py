"""The store on faulty disks, with damaged files and concurrent processes: no wrong row, no crash.

Disk faults are made by the operating system, for a process of its own.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings

import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.dataset import Dataset

from ..support.faults import FastClock, FaultServer
from ..support.store_processes import (
    LAST,
    check_store,
    connect,
    list_datasets,
    load,
    open_dataset,
    read_result,
    start_worker,
)

TWICE = """
results = []
for _ in range(2):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = load()
    assert rows.equals(pl.read_parquet(truth)), "other rows"
    results.append([type(warning.message).__name__ for warning in caught])
print(json.dumps(results))
"""
"""Load twice, and print the warnings of each load."""

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"


@pytest.mark.crash
class TestDisk:
    """If the store cannot be written, loads continue without it, with one warning."""

    def command_with_disk(self, where, then="", size="200k"):
        """Return the command prefix that mounts a small disk for a command at *where*."""
        where.mkdir(exist_ok=True)
        mount = f'mount -t tmpfs -o size={size} small "{where}" {then} && exec "$@"'
        within = ["unshare", "-rm", "sh", "-c", mount, "sh"]
        able = shutil.which("unshare") is not None
        if (
            not able
            or subprocess.run([*within, "true"], check=False, capture_output=True).returncode
        ):
            pytest.skip("mounting a disk is not permitted on this machine")
        return within

    @pytest.mark.parametrize(
        "size",
        [
            pytest.param("40k", marks=pytest.mark.more),
            *(pytest.param(size, marks=pytest.mark.long) for size in ("16k", "56k")),
        ],
    )
    def test_a_full_disk_stops_no_load(self, server, store, truth, size):
        """A disk that becomes full: when the store is created, or later."""
        process = start_worker(
            TWICE, server, store, truth, within=self.command_with_disk(store, size=size)
        )

        assert [["StoreUnavailable"], []] == read_result(process)

    @pytest.mark.long
    def test_read_only_disk(self, server, store, truth):
        """A disk that cannot be written."""
        within = self.command_with_disk(store, f'&& mount -o remount,ro "{store}"')

        assert [["StoreUnavailable"], []] == read_result(
            start_worker(TWICE, server, store, truth, within=within)
        )

    @pytest.mark.long
    def test_a_folder_without_permission_stops_no_load(self, server, store, truth):
        """A folder without permission to write."""
        store.mkdir(mode=0o500)
        within = []
        if shutil.which("setpriv"):
            # Otherwise root may write everywhere.
            within = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        process = start_worker(TWICE, server, store, truth, within=within)

        assert [["StoreUnavailable"], []] == read_result(process)

    @pytest.mark.long
    def test_read_only_store(self, server, store, truth):
        """A store that is read-only now still serves its rows."""
        load(connect(server, store), until=99)
        for path in (*store.rglob("*"), store):
            path.chmod(0o500 if path.is_dir() else 0o400)
        within = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        process = start_worker(
            TWICE, server, store, truth, within=within if shutil.which("setpriv") else []
        )
        try:
            assert [["StoreUnavailable"], []] == read_result(process)
        finally:
            for path in (store, *store.rglob("*")):
                path.chmod(0o700 if path.is_dir() else 0o600)
        assert 100 * 40 == open_dataset(store).scan("balance_history").collect().height

    @pytest.mark.long
    def test_a_quota_stops_no_load(self, server, store, truth):
        """A limit on the size of files affects ledger and segments."""
        assert [["StoreUnavailable"], []] == read_result(
            start_worker(LIMITED + TWICE, server, store, truth)
        )

    def test_no_shared_memory(self, server, store, truth, monkeypatch):
        """F15: the store works on file systems without shared memory, such as network drives."""
        open_file = sqlite3.connect

        def connect_without_shared_memory(path, **options):
            if str(store) not in str(path):
                # The simulation that the server reads may be read-only.
                return open_file(path, **options)
            address = str(path) if str(path).startswith("file:") else f"file:{path}?mode=rwc"
            return open_file(f"{address}&vfs=unix-dotfile", **{**options, "uri": True})

        monkeypatch.setattr(sqlite3, "connect", connect_without_shared_memory)
        with connect(server, store) as explorer:
            assert_frame_equal(truth[0], load(explorer))
            before = server.requests
            assert_frame_equal(truth[0], load(explorer))

        assert before == server.requests
        assert ["ledger.sqlite"] == [path.name for path in store.rglob("ledger*")]


def damage(path, how, dice):
    """Damage a file in one of the usual ways."""
    content = bytearray(path.read_bytes())
    path.unlink()
    if how == "flip":
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif how == "zero":
        start = dice.randrange(len(content))
        content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    elif how == "cut":
        del content[dice.randrange(len(content)) :]
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("/dev/null")
    elif how != "gone":
        path.write_bytes(content)


@pytest.mark.parametrize("damages", [6, pytest.param(1_000, marks=pytest.mark.long)])
def test_the_store_recovers_from_damaged_files(server, tmp_path, truth, damages):
    """F12: whichever file is damaged, loaded rows are right, and the store recovers."""
    dice = random.Random(20)
    full, store = tmp_path / "full", tmp_path / "store"
    with connect(server, full) as explorer:
        for first in range(0, LAST + 1, 50):
            load(explorer, until=first + 49)
    for _ in range(damages):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(full, store)
        path = dice.choice([path for path in sorted(store.rglob("*")) if path.is_file()])
        damage(path, dice.choice(["flip", "zero", "cut", "gone", "folder", "link"]), dice)
        foreign = []
        for _ in range(2):
            before = server.requests
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", errors.StoreUnavailable)
                with connect(server, store) as explorer:
                    assert_frame_equal(truth[0], load(explorer))
            foreign += [one for one in caught if "of another chain" in str(one.message)]
        if not foreign:
            # The store has recovered, unless the damage changed the name of the chain.
            assert before == server.requests
            check_store(store, truth)


@pytest.mark.more
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_missing_log_gives_no_wrong_row(server, store, truth, suffix):
    """F12: a missing log of the ledger loses commits, but gives no wrong row."""
    with connect(server, store) as explorer:
        load(explorer, until=49)
    (folder,) = store.iterdir()
    ledger = folder / "ledger.sqlite"
    # While another connection is open, commits stay in the log.
    holding = sqlite3.connect(ledger)
    holding.execute("SELECT count(*) FROM segments").fetchone()
    with connect(server, store) as explorer:
        load(explorer)
    copy = store.parent / "copy"
    shutil.copytree(store, copy)
    holding.close()
    log = copy / folder.name / f"ledger.sqlite{suffix}"
    assert log.exists()
    log.unlink()

    with connect(server, copy) as explorer:
        assert_frame_equal(truth[0], load(explorer))
    check_store(copy, truth)


MIXED = """
rows = pl.read_parquet(truth)
warnings.simplefilter("error")
for _ in range(int(count)):
    what = dice.random()
    if what < 0.85:
        low, since = dice.randrange(40), dice.randrange(200)
        validators, until = range(low, dice.randint(low, 39) + 1), dice.randint(since, 199)
        inside = pl.col("validator_index").is_between(low, validators.stop - 1)
        expected = rows.filter(inside, pl.col("epoch").is_between(since, until))
        assert expected.equals(load(validators, since, until)), (validators, since, until)
    elif what < 0.88:
        bf.store(explorer).compact()
    elif what < 0.91:
        if not bf.store(explorer).tables().is_empty():
            bf.store(explorer).prune("balance_history", [dice.randrange(40)], first=100)
    elif what < 0.95:
        assert [] == bf.store(explorer).verify()
    else:
        bf.store(explorer).tables(), bf.store(explorer).coverage("balance_history")
print(json.dumps("done"))
"""


@pytest.mark.parametrize(
    ("processes", "count"),
    [pytest.param(2, 10, marks=pytest.mark.more), pytest.param(8, 200, marks=pytest.mark.long)],
)
def test_processes_at_once(server, store, truth, processes, count):
    """F10: processes load, compact, prune and verify one store: no error, no wrong row."""
    work = [
        start_worker(MIXED, server, store, truth, seed=seed, count=count)
        for seed in range(processes)
    ]

    assert ["done"] * processes == [read_result(process) for process in work]
    check_store(store, truth)
    with connect(server, store) as explorer:
        load(explorer)
        before = server.requests
        assert_frame_equal(truth[0], load(explorer))
    assert before == server.requests


@pytest.mark.long
def test_processes_that_load_the_same(server, store, truth):
    """Without pruning, processes together request each row once, apart from races."""
    code = MIXED.replace("0.85", "2.0")
    before = server.requests
    assert "done" == read_result(
        start_worker(code, server, store.with_name("alone"), truth, count=200)
    )
    alone = server.requests - before
    work = [start_worker(code, server, store, truth, seed=seed, count=200) for seed in range(8)]

    assert ["done"] * 8 == [read_result(process) for process in work]
    assert server.requests - before <= alone + alone + 80
    check_store(store, truth)


BEGIN = """
import sys, time, warnings
import polars as pl
from pathlib import Path
from beaconframes.calendar import MAINNET
from beaconframes.cache.local_store import LocalStore
from beaconframes.dataset import Grid
warnings.simplefilter("error")
folder, who, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rows = pl.DataFrame({"who": [who], "epoch": [5]})
print("ready", flush=True)
start = float(sys.stdin.readline())
for number in range(count):
    time.sleep(max(0.0, start + number * 0.02 - time.monotonic()))
    local_store = LocalStore(folder / str(number), url="http://x", chain=MAINNET)
    grid = Grid("who", "epoch", ("who", "epoch"))
    assert local_store.put("some", rows, grid, {str(who): ((5, 5),)}, 5)
"""


@pytest.mark.more
@pytest.mark.parametrize(
    ("processes", "count"), [(2, 5), pytest.param(8, 100, marks=pytest.mark.long)]
)
def test_processes_that_create_one_store(tmp_path, processes, count):
    """F10: all processes store their rows, and none of them raises that the store is busy."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", BEGIN, str(tmp_path)]
    running = [
        subprocess.Popen([*command, str(who), str(count)], text=True, **pipes)
        for who in range(processes)
    ]
    for process in running:
        assert "ready\n" == process.stdout.readline()
    start = time.monotonic() + 0.1
    for process in running:
        process.stdin.write(f"{start}\n")
        process.stdin.flush()
    ended = [process.communicate()[1] for process in running]

    assert [""] * processes == ended
    for number in range(count):
        rows = Dataset.open(tmp_path / str(number)).scan("some").collect()
        assert list(range(processes)) == sorted(rows["who"])


BAD = (
    "200_html", "204", "empty_200", "truncated_json?fraction=0.5", "drop", "disconnect_mid_body",
    "rows_drop?every=2&at=1", "5xx?code=503", "401", "error_200",
)  # fmt: skip


@pytest.mark.parametrize("times", [1, pytest.param(17, marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore::beaconframes.errors.MissingRows")
def test_bad_responses_are_never_stored(server, tmp_path, truth, times):
    """F09: errors and invalid data leave nothing in the store; of partial responses, right rows."""
    bad = 0
    for number, fault in enumerate(BAD):
        store, parts = tmp_path / str(number), fault.startswith("rows")
        name = f"{fault}{'&' if '?' in fault else '?'}path=balancehistory"
        with FaultServer(name, upstream=server.url) as damaging:
            for _ in range(times):
                shutil.rmtree(store, ignore_errors=True)
                explorer = bf.Explorer(
                    damaging.url, chain=server.service.chain, store=store, rate=10_000
                )
                explorer.rate_limiter.clock = FastClock()
                with explorer, pytest.raises(errors.BeaconframesError):
                    load(explorer, validators=range(4), until=9)
                there = (
                    open_dataset(store).scan("balance_history").collect()
                    if list_datasets(store)
                    else None
                )
                if parts:
                    assert 0 < there.height < 40
                    assert_frame_equal(there, truth[0].join(there, on=there.columns, how="semi"),
                                       check_row_order=False)  # fmt: skip
                else:
                    assert there is None
        bad += sum("balancehistory" in seen.target for seen in damaging.seen)
    assert bad >= 30 * times


@pytest.mark.more
@pytest.mark.parametrize("headers", ["public, max-age=31536000, immutable", "no-store"])
def test_cache_headers_have_no_effect(server, store, headers, monkeypatch):
    """F03: finality decides which rows are stored, whatever the headers of a response say."""
    from ..support.faults import Connection

    respond = Connection.respond
    monkeypatch.setattr(
        Connection,
        "respond",
        lambda *args, **extra: respond(*args, **(extra | {"Cache-Control": headers})),
    )
    with FaultServer("", upstream=server.url) as moving:
        url, chain = moving.url, server.service.chain
        for _ in range(2):
            with bf.Explorer(url, chain=chain, store=store, rate=10_000) as explorer:
                load(explorer, range(3), 460, 469)
                seen = len(moving.seen)
                load(explorer, range(3), 460, 469)
        again = [one.target for one in moving.seen[seen:]]

    # Only the two epochs that are not final are requested, each time.
    assert {(460, 467)} == {
        runs for (runs,) in open_dataset(store).coverage("balance_history").values()
    }
    assert ["limit=2" in target for target in again] == [True]


def test_planted_files_are_ignored(server, store, truth):
    """F17: files that do not belong to the store are ignored, and never executed."""
    with connect(server, store) as explorer:
        load(explorer)
    dataset = open_dataset(store)
    trap = b"cos\nsystem\n(S'touch " + str(store / "trapped").encode() + b"'\ntR."
    for name in ("000099-0123456789ab.parquet", "rows.pickle", ".000001.tmp"):
        (dataset.path / "balance_history" / name).write_bytes(trap)
    (dataset.path / "meta.pickle").write_bytes(trap)

    with connect(server, store) as explorer:
        assert_frame_equal(truth[0], load(explorer))
    assert not (store / "trapped").exists()
    check_store(store, truth)
