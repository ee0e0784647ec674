"""The storage format: round trips, commits, refusals and damage."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from beaconframes.dataset import Damage, Dataset, TableSize, ledger, segments
from beaconframes.errors import DatasetError, UsageError

META = {"service": "simulated", "simulated": True, "seed": 1, "chain": {"name": "simulated"}}
SCHEMA = {"validator_index": pl.Int64, "epoch": pl.Int64, "fee_wei": pl.Decimal(28, 0)}


@pytest.fixture
def dataset(tmp_path):
    return Dataset.create(tmp_path / "data", meta=META)


def rows(first, last):
    """One row per number; the wei values do not fit into 64 bits."""
    numbers = range(first, last + 1)
    return pl.DataFrame(
        {
            "validator_index": [n % 7 for n in numbers],
            "epoch": list(numbers),
            "fee_wei": [Decimal(10**24 + n) for n in numbers],
        },
        schema=SCHEMA,
    )


def names(folder):
    """The names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def files(dataset):
    return sorted(str(p.relative_to(dataset.path)) for p in dataset.path.rglob("*.parquet"))


def test_commit_is_durable(dataset, monkeypatch):
    """A segment is on the disk before it has its name, and its name before the ledger lists it."""
    steps, sync, rename, add = [], os.fsync, Path.replace, ledger.add_segment

    def record_sync(handle):
        steps.append(("fsync", os.fstat(handle).st_ino))
        sync(handle)

    def record_rename(path, target):
        steps.append(("rename", path.stat().st_ino))
        return rename(path, target)

    def record_listing(connection, number, segment):
        steps.append(("list", (dataset.path / segment.path).stat().st_ino))
        add(connection, number, segment)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", record_rename)
    monkeypatch.setattr(ledger, "add_segment", record_listing)
    dataset.write("income", [rows(0, 9)])

    file, folder = ((dataset.path / name).stat().st_ino for name in (*files(dataset), "income"))
    own = [step for step in steps if step[1] in (file, folder)]
    assert [("fsync", file), ("rename", file), ("fsync", folder), ("list", file)] == own


class TestRoundTrip:
    def test_rows_are_read_back(self, dataset):
        """Rows are read back exactly, in the order of writing."""
        dataset.write("income", [rows(0, 9), rows(10, 19)])

        assert rows(0, 19).equals(dataset.scan("income").collect())

    def test_second_commit_adds(self, dataset):
        """A second write adds its rows after those of the first."""
        dataset.write("income", [rows(0, 9)])
        dataset.write("income", [rows(10, 19)])

        assert rows(0, 19).equals(Dataset.open(dataset.path).scan("income").collect())

    def test_facts_are_read_back_unchanged(self, dataset):
        """Facts about the data are read back unchanged, with the format version."""
        assert {"format_version": 1, **META} == Dataset.open(dataset.path).meta

    def test_a_commit_sets_facts_and_leaves_the_others(self, dataset):
        """A commit can set facts; the others stay."""
        with dataset.writing() as writer:
            writer.add("income", rows(0, 0))
            writer.set_meta({"finalized_epoch": 7, "seed": 2})

        assert {"format_version": 1, **META, "finalized_epoch": 7, "seed": 2} == dataset.meta

    def test_empty_table_has_its_columns(self, dataset):
        """An empty table has its schema, from schema= or from an empty frame."""
        dataset.write("by_schema", [], schema=SCHEMA)
        dataset.write("by_frame", [rows(0, -1)])

        for table in ("by_schema", "by_frame"):
            assert pl.DataFrame(schema=SCHEMA).equals(dataset.scan(table).collect())

    def test_rows_added_to_an_empty_table(self, dataset):
        """A table that was created empty accepts rows later."""
        dataset.write("income", [], schema=SCHEMA)
        dataset.write("income", [rows(0, 3)])
        dataset.write("income", [])

        assert rows(0, 3).equals(dataset.scan("income").collect())

    def test_streams_into_full_segments(self, dataset, monkeypatch):
        """The bytes of the files do not depend on how rows are split into frames."""
        monkeypatch.setattr(segments, "ROWS", 10)
        dataset.write("one", [rows(0, 24)])
        dataset.write("many", [rows(n, n) for n in range(25)])

        one, many = dataset.segments("one"), dataset.segments("many")
        assert [10, 10, 5] == [segment.rows for segment in one]
        assert [s.sha256 for s in one] == [s.sha256 for s in many]
        assert rows(0, 24).equals(dataset.scan("many").collect())

    def test_wide_rows_fill_segments_earlier(self, dataset, monkeypatch):
        """Segments of large rows have fewer rows."""
        monkeypatch.setattr(segments, "BYTES", 5_000)
        wide = pl.DataFrame({"text": ["x" * 1_000] * 3})
        dataset.write("wide", [wide] * 5)

        assert [6, 6, 3] == [segment.rows for segment in dataset.segments("wide")]

    def test_the_ledger_matches_the_files(self, dataset):
        """Rows, bytes, hash and ranges in the ledger match the file."""
        dataset.write("income", [rows(5, 8)])
        (segment,) = dataset.segments("income")
        content = (dataset.path / segment.path).read_bytes()

        assert (4, len(content)) == (segment.rows, segment.bytes)
        assert hashlib.sha256(content).hexdigest() == segment.sha256
        assert {"validator_index": (0, 6), "epoch": (5, 8)} == segment.ranges
        assert {"income": TableSize(rows=4, bytes=len(content), segments=1)} == dataset.tables()

    def test_other_readers_can_read_it(self, dataset):
        """Segments are plain Parquet: zstd, statistics, decimals that pyarrow reads exactly."""
        import pyarrow.parquet as pq

        dataset.write("income", [rows(0, 9)])
        (segment,) = dataset.segments("income")
        file = pq.ParquetFile(dataset.path / segment.path)
        column = file.metadata.row_group(0).column(1)

        assert ("ZSTD", 0, 9) == (column.compression, column.statistics.min, column.statistics.max)
        assert Decimal(10**24 + 9) == file.read()["fee_wei"][9].as_py()


class TestCommit:
    def test_all_or_nothing(self, dataset):
        """A failed commit adds no table and no fact, and earlier rows stay."""
        dataset.write("income", [rows(0, 9)])

        def broken():
            yield rows(10, 19)
            raise ZeroDivisionError

        def commit():
            with dataset.writing() as writer:
                writer.set_meta({"seed": 99})
                writer.add("other", rows(0, 9))
                for frame in broken():
                    writer.add("income", frame)

        with pytest.raises(ZeroDivisionError):
            commit()

        assert rows(0, 9).equals(dataset.scan("income").collect())
        assert (["income"], 1) == (list(dataset.tables()), dataset.meta["seed"])

    def test_unlisted_files_are_ignored(self, dataset):
        """A file that the ledger does not list is not read, and the next commit deletes it."""
        dataset.write("income", [rows(0, 9)])
        named = files(dataset)
        stray = dataset.path / "income" / "000009-0123456789ab.parquet"
        shutil.copy(dataset.path / named[0], stray)
        draft = dataset.path / "income" / ".000010.tmp"
        draft.write_bytes(b"half a segment")
        mine = dataset.path / "income" / "notes.txt"
        mine.write_text("not a segment")

        reopened = Dataset.open(dataset.path)
        assert rows(0, 9).equals(reopened.scan("income").collect())
        assert stray.exists()

        reopened.write("income", [rows(10, 10)])
        assert (False, False, True) == (stray.exists(), draft.exists(), mine.exists())
        assert rows(0, 10).equals(reopened.scan("income").collect())

    def test_a_killed_writer_leaves_the_dataset_unchanged(self, dataset):
        """A writer killed between segments and ledger leaves the dataset unchanged."""
        dataset.write("income", [rows(0, 9)])
        code = (
            "import os, sys, polars as pl\n"
            "from beaconframes.dataset import Dataset, segments\n"
            "segments.ROWS = 5\n"
            "data = Dataset.open(sys.argv[1])\n"
            "frame = data.scan('income').collect()\n"
            "with data.writing() as writer:\n"
            "    writer.add('income', frame)\n"
            "    os._exit(9)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(dataset.path)], check=False)

        assert 9 == done.returncode
        assert 3 == len(files(dataset))
        assert rows(0, 9).equals(dataset.scan("income").collect())
        Dataset.open(dataset.path).write("income", [rows(10, 10)])
        assert (2, []) == (len(files(dataset)), dataset.verify())

    def test_writers_at_once_take_turns(self, dataset):
        """Threads that write at once take turns; no row is missing."""
        dataset.write("income", [], schema=SCHEMA)
        threads = [
            threading.Thread(target=dataset.write, args=("income", [rows(n, n)])) for n in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert rows(0, 15).equals(dataset.scan("income").collect().sort("epoch"))

    def test_reader_during_a_commit(self, dataset):
        """During a commit, readers see the state before it and do not wait."""
        dataset.write("income", [rows(0, 1)])
        with dataset.writing() as writer:
            writer.add("income", rows(2, 3))
            before = dataset.scan("income").collect()

        assert rows(0, 1).equals(before)
        assert rows(0, 3).equals(dataset.scan("income").collect())

    def test_the_ledger_has_a_table_of_coverage(self, dataset):
        """The ledger has a table of coverage by subject and interval."""
        with sqlite3.connect(dataset.path / "ledger.sqlite") as ledger:
            columns = [name for _, name, *_ in ledger.execute("PRAGMA table_info(coverage)")]
        ledger.close()

        assert ["table_name", "subject", "first", "last"] == columns


class TestRefusals:
    def test_an_unknown_table_lists_the_existing_ones(self, dataset):
        """The error for an unknown table lists the existing ones."""
        dataset.write("income", [rows(0, 0)])

        with pytest.raises(DatasetError, match=r"no table 'blocks'. It has: income"):
            dataset.scan("blocks")

    def test_unknown_table_with_schema(self, dataset):
        """With a schema an unknown table is an empty frame."""
        assert pl.DataFrame(schema=SCHEMA).equals(dataset.scan("none", schema=SCHEMA).collect())

    @pytest.mark.parametrize("name", ["", "a/b", "../x", "A", "1a", "a-b", None, "x" * 65])
    def test_an_invalid_table_name_is_refused(self, dataset, name):
        """An invalid name is refused before anything is written."""
        with pytest.raises(UsageError, match="not a valid name of a table"):
            dataset.write(name, [rows(0, 0)])

        assert ["ledger.sqlite"] == names(dataset.path)

    def test_no_frames_no_schema(self, dataset):
        """A new table needs frames or a schema."""
        with pytest.raises(UsageError, match="no frame was given for table income"):
            dataset.write("income", [])

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda f: f.drop("epoch"), "epoch missing"),
            (lambda f: f.with_columns(x=1), "x not expected"),
            (lambda f: f.cast({"epoch": pl.Int32}), "epoch is Int32, not Int64"),
            (lambda f: f.select(f.columns[::-1]), "the order of the columns differs"),
        ],
    )
    def test_rows_with_other_columns_are_refused(self, dataset, change, reason):
        """Rows with other columns than the table are refused, in this process and a later one."""
        dataset.write("income", [rows(0, 0)])

        with pytest.raises(UsageError, match=reason):
            Dataset.open(dataset.path).write("income", [change(rows(1, 1))])
        with pytest.raises(UsageError, match=reason):
            dataset.write("new", [rows(0, 0), change(rows(1, 1))])

    def test_not_a_dataset(self, tmp_path):
        """The error says why a path is not a dataset."""
        (tmp_path / "file").write_text("x")
        (tmp_path / "foreign").mkdir()
        other = sqlite3.connect(tmp_path / "foreign" / "ledger.sqlite")
        other.execute("CREATE TABLE t (a)")
        other.close()

        for name, reason in {
            "nowhere": "does not exist",
            "file": "is a file, not a dataset",
            "": "it has no ledger.sqlite",
            "foreign": "belongs to another program",
        }.items():
            with pytest.raises(DatasetError, match=reason):
                Dataset.open(tmp_path / name)

    def test_ledger_with_the_number_of_another_program_is_refused(self, dataset):
        """SQLite files have the number of their program."""
        ledger = sqlite3.connect(dataset.path / "ledger.sqlite")
        ledger.execute("PRAGMA application_id = 7")
        ledger.close()

        with pytest.raises(DatasetError, match="belongs to another program"):
            Dataset.open(dataset.path)

    def test_a_newer_format_is_refused(self, dataset):
        """F14: a dataset of a newer format is refused."""
        ledger = sqlite3.connect(dataset.path / "ledger.sqlite")
        ledger.execute("PRAGMA user_version = 2")
        ledger.close()

        with pytest.raises(
            DatasetError, match="format version 2, this beaconframes reads version 1"
        ):
            Dataset.open(dataset.path)

    @pytest.mark.parametrize("content", [b"", b"not SQLite at all, but long enough" * 99])
    def test_a_damaged_ledger_is_a_dataset_error(self, dataset, content):
        """A ledger that is not an SQLite file raises DatasetError."""
        (dataset.path / "ledger.sqlite").write_bytes(content)

        with pytest.raises(DatasetError):
            Dataset.open(dataset.path)
        if content:
            with pytest.raises(DatasetError, match="damaged"):
                dataset.scan("income")
            with pytest.raises(DatasetError, match="damaged"):
                dataset.write("income", [rows(0, 0)])

    def test_a_dataset_is_never_created_over_files(self, dataset, tmp_path):
        """A dataset is created neither over another one nor among other files."""
        with pytest.raises(DatasetError, match="is already a dataset"):
            Dataset.create(dataset.path, meta={})
        with pytest.raises(DatasetError, match="is not empty"):
            Dataset.create(tmp_path, meta={})

    def test_an_unwritable_folder_is_a_dataset_error(self, dataset, tmp_path, monkeypatch):
        """Creating and writing in an unwritable folder raise DatasetError."""
        (tmp_path / "file").write_text("x")
        with pytest.raises(DatasetError, match=r"cannot create a dataset|is a file"):
            Dataset.create(tmp_path / "file" / "data", meta={})
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(DatasetError, match="cannot be written to"):
            dataset.write("income", [rows(0, 0)])

    def test_read_only_folder_can_be_read(self, dataset, monkeypatch):
        """Reading a dataset on a read-only disk writes nothing."""
        dataset.write("income", [rows(0, 9)])
        # A log without commits needs no files beside it.
        (dataset.path / "ledger.sqlite-wal").touch()
        before = names(dataset.path)
        monkeypatch.setattr(os, "access", lambda *_: False)

        assert rows(0, 9).equals(Dataset.open(dataset.path).scan("income").collect())
        assert before == names(dataset.path)

    def test_meta_must_be_json(self, tmp_path):
        """Facts that JSON cannot hold are refused, and no dataset is created."""
        with pytest.raises(UsageError, match="JSON"):
            Dataset.create(tmp_path / "x", meta={"when": object()})

        assert [] == names(tmp_path / "x")

    def test_a_full_disk_leaves_the_dataset_unchanged(self, dataset, monkeypatch):
        """A full disk raises DatasetError, and the dataset is unchanged."""
        dataset.write("income", [rows(0, 9)])

        def full(self, *_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
        with pytest.raises(
            DatasetError, match=r"No space left on device\. The dataset is unchanged"
        ):
            dataset.write("income", [rows(10, 19)])
        monkeypatch.undo()

        assert rows(0, 9).equals(dataset.scan("income").collect())


class TestDamage:
    @pytest.fixture
    def segment(self, dataset):
        dataset.write("income", [rows(0, 99)])
        dataset.write("blocks", [rows(0, 99)])
        (segment,) = dataset.segments("income")
        assert [] == dataset.verify()
        return segment

    def test_the_hash_detects_a_flipped_bit(self, dataset, segment):
        """The hash detects one changed bit."""
        path = dataset.path / segment.path
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

        reason = "does not have the content that was written"
        assert [Damage("income", segment.path, reason)] == dataset.verify()

    @pytest.mark.parametrize("harm", ["missing", "cut", "folder", "link"])
    def test_damage_is_detected_before_reading(self, dataset, segment, harm):
        """A missing, truncated or replaced segment is an error before any row is read."""
        path = dataset.path / segment.path
        content = path.read_bytes()
        path.unlink()
        if harm == "cut":
            path.write_bytes(content[:-10])
        elif harm == "folder":
            path.mkdir()
        elif harm == "link":
            (dataset.path / "elsewhere").write_bytes(content)
            path.symlink_to(dataset.path / "elsewhere")

        with pytest.raises(DatasetError, match=f"table income .* is damaged: {segment.path}"):
            dataset.scan("income")
        assert [segment.path] == [damage.path for damage in dataset.verify()]
        assert rows(0, 99).equals(dataset.scan("blocks").collect())

    def test_path_outside_of_the_folder(self, dataset, segment):
        """A forged ledger cannot make the reader open files outside of the dataset."""
        ledger = sqlite3.connect(dataset.path / "ledger.sqlite", isolation_level=None)
        ledger.execute("UPDATE segments SET path = '../../etc/x' WHERE table_name = 'income'")
        ledger.close()

        with pytest.raises(DatasetError, match="is not a valid path of a segment"):
            dataset.scan("income")


def test_the_format_imports_no_other_package():
    """Of this project, dataset imports errors, texts, intervals and SQLite."""
    code = (
        "import sys, beaconframes.dataset\n"
        "mine = {m for m in sys.modules if m.startswith('beaconframes.')}\n"
        "print(sorted(m for m in mine if not m.startswith('beaconframes.dataset')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    ground = ["column_errors", "errors", "intervals", "sqlite_file", "summary", "text"]
    assert str([f"beaconframes.{name}" for name in ground]) == done.stdout.strip()


def test_location_may_have_any_name(tmp_path):
    """A path may have blanks, percent signs, brackets and question marks."""
    path = Path(tmp_path) / "a b%20[c]?#é*"
    dataset = Dataset.create(path, meta=META)
    dataset.write("income", [rows(0, 3)])

    assert rows(0, 3).equals(Dataset.open(path).scan("income").collect())


SQLITE_FILES = """
import os, sys, traceback
from pathlib import Path

def find_descriptors(event, args):
    if event == "open" and str(args[0]).endswith(("lock", ".sqlite", "-wal", "-shm", "-journal")):
        if not args[2] & os.O_EXCL:
            traceback.print_stack()

sys.addaudithook(find_descriptors)
import beaconframes as bf
from beaconframes.dataset import Dataset

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
options = {"store": folder / "store", "state": folder / "state", "store_limit": 10**9}
with bf.local(source) as service, bf.connect(service.url, chain=service.chain, **options):
    for last in (20, 40, 40):
        bf.load_balance_history(range(50), since=0, until=last)
    bf.quota(), bf.store()
    for last in (30, 40):
        bf.export(bf.load_balance_history, folder / "out", validators=range(9), since=0, until=last)
with bf.open(source):
    bf.load_income_history(range(50), since=0, until=20)
for store in folder.glob("store/*"):
    dataset = Dataset.open(store)
    dataset.compact()
    dataset.prune("balance_history", ["3"])
    dataset.mend()
    dataset.verify()
    dataset.check_files()
    assert dataset.has_intact_ledger
with bf.open(source) as opened:
    bf.report(range(3), explorer=opened).save(folder / "report.html")
"""


@pytest.mark.long
def test_only_sqlite_opens_its_files(chain, tmp_path):
    """A descriptor of our own would release the locks of the process when it is closed."""
    command = [sys.executable, "-c", SQLITE_FILES, chain.path, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "" == done.stderr
    assert (tmp_path / "state" / "rate_limits.sqlite").exists()
    assert list(tmp_path.glob("store/*/ledger.sqlite"))


def test_a_killed_creation_leaves_the_folder_usable(tmp_path):
    """Its draft is no file of a user."""
    folder = tmp_path / "data"
    killed = f"""
import os, signal
from beaconframes.dataset import Dataset, ledger
ledger.set_meta = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Dataset.create({str(folder)!r}, meta={{}})
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode < 0
    assert any(folder.iterdir())

    Dataset.create(folder, meta=META).write("income", [rows(0, 3)])

    assert rows(0, 3).equals(Dataset.open(folder).scan("income").collect())


def test_of_two_creations_at_once_one_succeeds(tmp_path, monkeypatch):
    """The other one must not replace the ledger, which may have rows already."""
    set_meta = ledger.set_meta

    def interrupt(connection, facts):
        monkeypatch.setattr(ledger, "set_meta", set_meta)
        Dataset.create(tmp_path / "data", meta=META).write("income", [rows(0, 3)])
        set_meta(connection, facts)

    monkeypatch.setattr(ledger, "set_meta", interrupt)
    with pytest.raises(DatasetError, match="is already a dataset"):
        Dataset.create(tmp_path / "data", meta=META)

    assert rows(0, 3).equals(Dataset.open(tmp_path / "data").scan("income").collect())


def test_the_class_does_not_open_a_folder():
    """A text is refused with the call that opens it; the class itself would read no format."""
    with pytest.raises(UsageError, match=r"Call Dataset\.open\('mychain'\)"):
        Dataset("mychain")
