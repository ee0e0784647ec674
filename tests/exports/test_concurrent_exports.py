"""Several exports to one folder, at the same time or with other arguments."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset
from beaconframes.dataset.published import checksum
from beaconframes.errors import DatasetError
from beaconframes.exports import lock, work_folder

from ..support.faults import FaultServer

RACER = """
import sys
import polars as pl
import beaconframes as bf
from beaconframes.errors import DatasetError
from beaconframes.exports import lock

lock.HOLDER_TIMEOUT = 60  # the machine may be busy
rows = pl.DataFrame({"n": range(2000), "text": ["x"] * 2000})
wait = sys.argv[1] == "wait"
print("ready", flush=True)
for line in sys.stdin:
    try:
        bf.export(rows, line.strip(), wait=wait)
        print("done", flush=True)
    except DatasetError as error:
        print(str(error), flush=True)
"""


def start_exporter(how):
    """Start a process that exports the same rows to every folder on its standard input."""
    command = [sys.executable, "-c", RACER, how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_race(folder, rounds, how):
    """Let two processes export to the same folders; return the results they print."""
    both = [start_exporter(how), start_exporter(how)]
    results = []
    try:
        for one in both:
            assert one.stdout.readline() == "ready\n"
        for number in range(rounds):
            target = folder / f"out-{number}"
            for one in both:
                one.stdin.write(f"{target}\n")
            for one in both:
                one.stdin.flush()
            results.append([one.stdout.readline().strip() for one in both])
            opened = Dataset.open(target)
            assert [] == opened.verify()
            assert 2000 == opened.scan("rows").collect().height
            assert not (target / work_folder.WORK_FOLDER).exists()
        return results, [one.pid for one in both]
    finally:
        for one in both:
            one.stdin.close()
            one.wait()
            one.stdout.close()


@pytest.mark.parametrize(
    "rounds", [pytest.param(5, marks=pytest.mark.more), pytest.param(100, marks=pytest.mark.long)]
)
def test_two_processes_export_to_one_folder(tmp_path, rounds):
    """K09: one process exports; the other follows it, or gets an error that names the process."""
    results, pids = run_race(tmp_path, rounds, "at once")
    refused = 0
    for pair in results:
        assert "done" in pair
        for number, result in enumerate(pair):
            if result != "done":
                refused += 1
                assert f"is running: process {pids[1 - number]} on {socket.gethostname()}" in result
    assert rounds < 100 or refused > 5


@pytest.mark.parametrize(
    "rounds", [pytest.param(3, marks=pytest.mark.more), pytest.param(100, marks=pytest.mark.long)]
)
def test_wait_waits_for_another_export(tmp_path, rounds):
    """K09: with wait=True both exports finish, and the result is one dataset."""
    results, _ = run_race(tmp_path, rounds, "wait")
    assert [["done", "done"]] * rounds == results


@pytest.mark.more
def test_wait_takes_over_the_lock_of_a_killed_process(tmp_path):
    """The lock of a process is released when the process dies."""
    rows = pl.DataFrame({"n": range(10)})
    holding = (
        "import sys, time\nfrom pathlib import Path\nfrom beaconframes.exports import work_folder\n"
        "path = Path(sys.argv[1]); path.mkdir()\n"
        "with work_folder.open_work_folder(path, path / work_folder.WORK_FOLDER):\n"
        " print('held', flush=True)\n time.sleep(600)"
    )
    command = [sys.executable, "-c", holding, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(DatasetError, match=f"is running: process {process.pid} on "):
            bf.export(rows, tmp_path / "out")
        threading.Timer(0.3, process.send_signal, (signal.SIGKILL,)).start()
        made = bf.export(rows, tmp_path / "out", wait=True)
    assert (10, 1) == (made.rows, made.added)
    assert not (tmp_path / "out" / work_folder.WORK_FOLDER).exists()


def test_dead_holder_is_not_named(tmp_path, monkeypatch):
    """The error names the holder of the lock, not a dead process that left its name."""
    monkeypatch.setattr(lock, "HOLDER_TIMEOUT", 60)  # the machine may be busy
    out = tmp_path / "out"
    out.mkdir()
    with work_folder.open_work_folder(out, out / work_folder.WORK_FOLDER):
        holder = out / work_folder.WORK_FOLDER / work_folder.HOLDER
        for name in ({"pid": 999_999_999, "host": socket.gethostname()}, {}, []):
            holder.write_text(json.dumps(name))
            timer = threading.Timer(
                0.1,
                holder.write_text,
                (json.dumps({"pid": os.getpid(), "host": socket.gethostname()}),),
            )
            timer.start()
            with pytest.raises(DatasetError, match=f"is running: process {os.getpid()} on "):
                bf.export(pl.DataFrame({"n": [1]}), out)
            timer.join()


@pytest.mark.parametrize("moment", ["stat", "connect"])
def test_lock_is_acquired_while_its_folder_is_removed(tmp_path, monkeypatch, moment):
    """The previous holder removes the folder at its end, at any moment."""
    folder = tmp_path / work_folder.WORK_FOLDER
    place = sqlite3 if moment == "connect" else type(folder)
    real, times = getattr(place, moment), []

    def gone_before(path, *args, **more):
        if str(folder / work_folder.LOCK) in str(path) and len(times) < 2:
            times.append(path)
            shutil.rmtree(folder)
        return real(path, *args, **more)

    monkeypatch.setattr(place, moment, gone_before)
    with work_folder.open_work_folder(tmp_path, folder):
        assert len(times) == 2
        assert (folder / work_folder.LOCK).is_file()
    assert not folder.exists()


def test_a_lock_on_a_removed_file_is_not_held(tmp_path, monkeypatch):
    """The previous holder removes the file after it was opened; a third export creates its own."""
    folder = tmp_path / work_folder.WORK_FOLDER
    real, times = lock.lock_file, []

    def replaced_after(path):
        locked = real(path)
        times.append(path)
        if len(times) < 3:
            # Not the same number again: the old file is still there.
            path.rename(path.with_name("removed"))
            path.touch()
        return locked

    monkeypatch.setattr(lock, "lock_file", replaced_after)
    with work_folder.open_work_folder(tmp_path, folder):
        assert 3 == len(times)
    assert not folder.exists()


def test_refused_export_of_the_same_process_keeps_the_lock(tmp_path):
    """A process that closed the file of its own lock would release it for other processes."""
    locked = (
        "import sqlite3, sys\nfile = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try: file.execute('BEGIN EXCLUSIVE')\nexcept sqlite3.OperationalError as e: print(e)"
    )
    folder = tmp_path / work_folder.WORK_FOLDER
    with work_folder.open_work_folder(tmp_path, folder):
        with pytest.raises(DatasetError, match=f"is running: process {os.getpid()} on "):
            bf.export(pl.DataFrame({"n": [1]}), tmp_path)
        other = subprocess.run(
            [sys.executable, "-c", locked, folder / work_folder.LOCK],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert "database is locked\n" == other.stdout


def test_holder_is_named_while_it_ends(tmp_path, monkeypatch):
    """The name may be removed a moment after it was read."""
    folder, real = tmp_path / work_folder.WORK_FOLDER, lock.may_hold_lock

    def and_gone(holder):
        (folder / lock.HOLDER).unlink()
        return real(holder)

    with work_folder.open_work_folder(tmp_path, folder):
        monkeypatch.setattr(lock, "may_hold_lock", and_gone)
        with pytest.raises(DatasetError, match=f"is running: process {os.getpid()} on "):
            bf.export(pl.DataFrame({"n": [1]}), tmp_path)


def write_record(folder, name):
    """Record a file as one that is about to be published."""
    (folder / work_folder.PUBLISHING).write_text(json.dumps({name: "0" * 64}))


@pytest.mark.parametrize("ends", [True, False])
def test_work_folder_of_the_next_export_is_not_removed(tmp_path, monkeypatch, ends):
    """An export that starts as soon as the lock is released keeps its own folder."""
    folder = tmp_path / work_folder.WORK_FOLDER
    real, started = os.unlink, []

    def unlink(path, **more):
        real(path, **more)
        if os.fspath(path).endswith(work_folder.LOCK) and not started:
            started.append(work_folder.open_work_folder(tmp_path, folder))
            started[0].__enter__()
            assert {work_folder.LOCK, work_folder.HOLDER} == {
                path.name for path in folder.iterdir()
            }
            write_record(folder, "the next export")
            if ends:
                started[0].__exit__(None, None, None)

    monkeypatch.setattr(os, "unlink", unlink)
    with work_folder.open_work_folder(tmp_path, folder) as first:
        write_record(folder, "the first export")
        first.create_draft_path().touch()
        (folder / "runs").mkdir()
    if not ends:
        assert {work_folder.LOCK, work_folder.HOLDER, work_folder.PUBLISHING} == {
            path.name for path in folder.iterdir()
        }
        assert "the next export" in (folder / work_folder.PUBLISHING).read_text()
        started[0].__exit__(None, None, None)
    assert not folder.exists()


def rewrite_manifest(folder, change):
    """Change the manifest as another service, chain or version would have written it."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["checksum"] = checksum(manifest)
    path.write_text(json.dumps(manifest))


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


WANTED = {"validators": range(5), "since": 100, "until": 200}
OTHERS = {
    "validators": ({"validators": range(6)}, None, "validators was 0-4, now it is 0-5"),
    "beginning": ({"since": 90}, None, "starts at epoch 100, and this export at 90"),
    "end": ({"until": 150}, None, "ends at epoch 200, and this export at 150"),
    "columns": (
        {},
        lambda manifest: manifest["tables"]["income_history"]["columns"].pop(),
        "columns.*was nothing, now it is",
    ),
    "chain": (
        {},
        lambda manifest: manifest["provenance"]["chain"].update(name="hoodi"),
        "chain was hoodi, now it is",
    ),
    "service": (
        {},
        lambda manifest: manifest["provenance"].update(service="https://other.example"),
        "service was https://other.example, now it is",
    ),
    "version": ({}, lambda manifest: manifest.update(format_version=2), "has format version 2"),
    "loader": (
        {},
        lambda manifest: manifest["tables"]["income_history"]["request"].update(
            loader="load_other"
        ),
        "request.loader was load_other",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_arguments_are_refused(tmp_path, explorer, kind):
    """The error names the difference and what to do; the dataset does not change."""
    out = tmp_path / "income"
    bf.export(bf.load_income_history, out, **WANTED)
    changes, rewrite, words = OTHERS[kind]
    if rewrite is not None:
        rewrite_manifest(out, rewrite)
    before = files(out)
    arguments = {**WANTED, **changes}
    with pytest.raises(DatasetError, match=words) as caught:
        bf.export(bf.load_income_history, out, **arguments)
    if kind != "version":
        assert "choose another folder, or remove this one" in caught.value.hint.lower()
    assert before == files(out)


@pytest.mark.parametrize("kind", ["frame", "lazy", "dataset", "function"])
def test_other_rows_are_refused(tmp_path, kind):
    """Rows that do not contain the published ones are an error; the dataset does not change."""
    bf.export(pl.DataFrame({"x": [1, 2]}), tmp_path / "out")
    before = files(tmp_path / "out")
    other = pl.DataFrame({"x": [1, 5]})
    bf.export(other, tmp_path / "other")
    kinds = {
        "frame": other,
        "lazy": other.lazy(),
        "dataset": Dataset.open(tmp_path / "other"),
        "function": lambda: other,
    }
    with pytest.raises(DatasetError, match="1 of them are not among") as caught:
        bf.export(kinds[kind], tmp_path / "out")
    assert "Choose another folder, or remove this one" in caught.value.hint
    assert before == files(tmp_path / "out")
    assert {"out", "other"} == {path.name for path in tmp_path.iterdir()}


def test_published_files_stay_when_another_table_is_refused(tmp_path, monkeypatch):
    """Also the published files in the record of a killed export."""
    from beaconframes.exports import dataset_writer

    def dataset(last):
        there = Dataset.create(tmp_path / f"from-{last}", meta={})
        there.write("first", [pl.DataFrame({"x": [1]})])
        there.write("second", [pl.DataFrame({"x": [last]})])
        return there

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dataset_writer, "append_history", killed)
        with pytest.raises(KeyboardInterrupt):
            bf.export(dataset(1), tmp_path / "out")
    with pytest.raises(DatasetError, match="are not among"):
        bf.export(dataset(2), tmp_path / "out")
    assert [] == Dataset.open(tmp_path / "out").verify()
    assert 2 == bf.export(Dataset.open(tmp_path / "from-1"), tmp_path / "out").rows


def test_loader_does_not_extend_the_export_of_a_frame(tmp_path, explorer):
    """Exported rows of a frame are not part of a loader's export."""
    bf.export(bf.load_income_history(**WANTED), tmp_path / "income")
    with pytest.raises(DatasetError, match=r"request\.loader was nothing"):
        bf.export(bf.load_income_history, tmp_path / "income", **WANTED)


def test_second_table_keeps_the_provenance_of_the_first(tmp_path, chain):
    """The provenance of the first table stays, and both tables can be exported again."""
    simulated, out = chain, tmp_path / "out"
    bf.export(simulated, out, table="epochs")
    before = json.loads((out / "manifest.json").read_text())
    for last in (1, 2, 2):
        made = bf.export(pl.DataFrame({"x": range(last)}), out, table="mine")
        assert last == made.rows
        manifest = json.loads((out / "manifest.json").read_text())
        assert before["provenance"] == manifest["provenance"]
        assert "simulated" in (out / "README.md").read_text()
        assert 0 == bf.export(simulated, out, table="epochs").added


def test_table_of_another_chain_is_refused(tmp_path, chain):
    """A dataset has one chain and one service."""
    out = tmp_path / "out"
    bf.export(chain, out, table="epochs")
    before = files(out)
    frame = pl.DataFrame({"epoch": [1], "time": [MAINNET.time_of("epoch", 1)]})
    with pytest.raises(DatasetError, match="chain was simulated, now it is mainnet"):
        bf.export(frame, out, table="mine")
    assert before == files(out)


LOADERS = (
    (bf.load_income_history, {"validators": range(100, 103)}),
    (bf.load_balance_history, {"validators": range(100, 103)}),
    (bf.load_attestations, {"validators": range(100, 103)}),
    (bf.load_epochs, {}),
    (bf.load_epoch_slots, {}),
    (bf.load_graffiti_wall, {}),
    (bf.v2.load_rewards, {"validators": bf.v2.validators(range(100, 103))}),
)


def test_rows_that_are_not_final_are_left_for_the_next_export(tmp_path, explorer):
    """An export ends at the epoch that is final when it starts, and reports it."""
    final = explorer.service.head.finalized_epoch
    chain = explorer.service.chain
    assert final < explorer.service.head.epoch
    for loader, subject in LOADERS:
        last = {"epoch": final, "slot": (final + 1) * chain.slots_per_epoch - 1}
        out = tmp_path / f"{loader.__module__}.{loader.__name__}"
        since = chain.time_of("epoch", final - 3)
        made = bf.export(loader, out, **subject, since=since)
        assert last[made.unit] == made.until
        assert f"up to {made.unit} {made.until}" in repr(made)
        (table,) = made.tables
        rows = Dataset.open(out).scan(table).collect()
        for column in {"slot", "epoch"} & set(rows.columns):
            assert (rows[column].max() or 0) <= last[column], loader
        manifest = json.loads((out / "manifest.json").read_text())
        assert final == manifest["provenance"]["finalized_epoch"]


@pytest.mark.long
def test_ten_exports_are_equal(tmp_path, running):
    """K13: the order of rows and faults of the service do not change a byte."""
    known = {"chain": running.service.chain, "head": running.service.head, "rate": 10_000}
    wanted = {"validators": range(100, 150), "since": 0, "until": 449}
    faults = (None, "rows_shuffle", "rows_dup", "5xx?status=502&times=2", "429_storm?times=2")
    dice = random.Random(4)
    made = []
    for number in range(10):
        out = tmp_path / f"out-{number}"
        fault = faults[number % len(faults)]
        with ExitStack() as stack:
            url = running.url
            if fault is not None:
                url = stack.enter_context(FaultServer(fault, upstream=running.url)).url
            explorer = stack.enter_context(bf.Explorer(url, **known))
            order = list(wanted["validators"])
            dice.shuffle(order)
            more = {"explorer": explorer, **wanted, "validators": order}
            assert bf.export(bf.load_balance_history, out, **more).complete
        made.append({n: data for n, data in files(out).items() if n != "history.jsonl"})
    assert [made[0]] * 10 == made
