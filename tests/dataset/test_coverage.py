"""Coverage of a dataset: reading, storing with rows, compaction, pruning, repair."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import pairwise

import polars as pl
import pytest

from beaconframes.dataset import Dataset, Grid, coverage, ledger, maintenance, segments
from beaconframes.errors import DatasetError, UsageError
from beaconframes.sqlite_file import Database

from ..support.calls import count_calls

GRID = Grid("validator", "epoch", ("validator", "epoch"))
SCHEMA = {"validator": pl.Int64, "epoch": pl.Int64, "reward": pl.Int64}


@pytest.fixture
def dataset(tmp_path):
    return Dataset.create(tmp_path / "data", meta={}, private=True)


def rows(validators, epochs):
    """Every row of the rectangle; the reward follows from the key."""
    return pl.DataFrame(
        [(v, e, v * 1_000_003 + e) for v in validators for e in epochs], schema=SCHEMA, orient="row"
    )


def add(dataset, validators, first, last, frame=None):
    found = rows(validators, range(first, last + 1)) if frame is None else frame
    with dataset.writing() as writer:
        writer.add_covered("t", found, GRID, {str(v): ((first, last),) for v in validators})


def read(dataset, validators, *parts):
    return dataset.select("t", [*map(str, validators)], parts, schema=SCHEMA).collect()


class TestCoverage:
    def test_adjacent_intervals_are_merged(self, dataset):
        """Coverage has sorted intervals with gaps between them, for each subject."""
        for first, last in [(10, 19), (30, 39), (20, 24), (26, 28), (100, 100)]:
            add(dataset, [1, 2], first, last)
        add(dataset, [2], 25, 25)
        add(dataset, [3], 0, 0)

        assert {
            "1": ((10, 24), (26, 28), (30, 39), (100, 100)),
            "2": ((10, 28), (30, 39), (100, 100)),
            "3": ((0, 0),),
        } == dataset.coverage("t")
        assert {"2": ((20, 28), (30, 31))} == dataset.coverage("t", ["2", "9"], first=20, last=31)
        assert {} == dataset.coverage("other")

    def test_additions_and_removals_equal_those_of_sets(self):
        """3,000 random additions and removals have the same result as on plain sets."""
        dice = random.Random(1)
        connection = Database(None)
        for statement in ledger._SCHEMA.split(";"):
            connection.execute(statement)
        truth = {str(n): set() for n in range(4)}
        for step in range(3_000):
            names = [name for name in truth if dice.random() < 0.4]
            first = dice.randrange(200)
            last = first + dice.randrange(9)
            change, method = (
                (coverage.add, set.update)
                if dice.random() < 0.6
                else (coverage.remove, set.difference_update)
            )
            change(connection, "t", dict.fromkeys(names, ((first, last),)))
            for name in names:
                method(truth[name], range(first, last + 1))
            if step % 50 == 0:
                covered = coverage.read(connection, "t")
                for name, units in truth.items():
                    parts = covered.get(name, ())
                    assert units == {u for a, b in parts for u in range(a, b + 1)}
                    assert all(b + 1 < c for (_, b), (c, _) in pairwise(parts))
        connection.close()

    @pytest.mark.parametrize(
        ("ends", "is_there"),
        [((0, 9), True), ((4, 5), True), ((12, 19), True), ((9, 10), False), ((9, 12), False),
         ((10, 11), False), ((15, 20), False), ((30, 30), False)],
    )  # fmt: skip
    def test_rows_that_were_removed_are_noticed(self, dataset, ends, is_there):
        """A selection whose units are not all complete any more is an error."""
        with ledger.write_transaction(dataset.path) as connection:
            coverage.add(connection, "t", {"1": ((0, 9), (12, 19)), "2": ((0, 30),)})
        complete = {"2": ((1, 3),), "1": (ends,)}
        select = partial(dataset.selection, "t", ["1", "2"], [(0, 30)], schema={"epoch": pl.Int64})
        if is_there:
            assert 0 == select(complete=complete).height
        else:
            with pytest.raises(DatasetError, match="rows of table t were removed from"):
                select(complete=complete)
        with pytest.raises(DatasetError, match="rows of table t were removed from"):
            select(complete={"3": ((0, 0),)})

    @pytest.mark.more
    def test_many_subjects_and_intervals(self, dataset):
        """Reading and adding looks at each of 100,000 intervals of 1,000 subjects at most once."""
        with ledger.write_transaction(dataset.path) as connection:
            connection.execute_many(
                "INSERT INTO coverage VALUES ('t', ?, ?, ?)",
                [(str(n), 100 * k, 100 * k + 49) for n in range(1000) for k in range(100)],
            )
        names = [str(n) for n in range(1000)]
        covered, read_calls = count_calls(dataset.coverage, "t", names)
        with dataset.writing() as writer:
            new = dict.fromkeys(names, ((5040, 5060),))
            _, calls = count_calls(coverage.add, writer.connection, "t", new)

        assert 400_000 > read_calls
        assert 100_000 > calls
        assert 100_000 == sum(map(len, covered.values()))
        assert ((5_000, 5_060), (5_100, 5_149)) == dataset.coverage("t", ["7"], first=5_000)["7"][
            :2
        ]

    def test_units_without_rows_are_covered(self, dataset):
        """Coverage is stored for units that have no rows."""
        add(dataset, [5], 0, 99, rows([], []))

        assert {"5": ((0, 99),)} == dataset.coverage("t")
        assert rows([], []).equals(read(dataset, [5], (0, 99)))

    def test_rows_of_the_whole_chain(self, dataset):
        """Rows of the whole chain have the subject ""."""
        grid = Grid(None, "epoch", ("epoch",))
        frame = rows([1], range(10))
        with dataset.writing() as writer:
            writer.add_covered("chain", frame, grid, {"": ((0, 9),)})

        assert {"": ((0, 9),)} == dataset.coverage("chain")
        found = dataset.select("chain", [""], [(2, 3), (8, 20)], schema=SCHEMA).collect()
        assert rows([1], [2, 3, 8, 9]).equals(found)


class TestAdding:
    def test_intervals_differ_between_subjects(self, dataset):
        """Each subject has its own intervals; a gap in the rows is a gap in the coverage."""
        frame = rows([1, 2], range(10)).filter(
            ~((pl.col("validator") == 2) & pl.col("epoch").is_in([3, 4, 9]))
        )
        found = coverage.find_covered(frame, GRID)
        with dataset.writing() as writer:
            writer.add_covered("t", rows([1, 2], range(10)), GRID, found)

        assert {"1": ((0, 9),), "2": ((0, 2), (5, 8))} == found == dataset.coverage("t")
        assert frame.equals(dataset.scan("t").collect())

    def test_rows_outside_of_the_coverage(self, dataset):
        """Rows outside of the added coverage are not stored."""
        add(dataset, [1, 2], 10, 19, rows(range(5), range(30)))

        assert rows([1, 2], range(10, 20)).equals(dataset.scan("t").collect())

    def test_rows_of_overlapping_rectangles_are_stored_once(self, dataset):
        """Of overlapping rectangles each row is stored once, the first one that was added."""
        dice = random.Random(2)
        truth = set()
        for _ in range(60):
            validators = [v for v in range(6) if dice.random() < 0.5] or [0]
            first = dice.randrange(80)
            last = first + dice.randrange(20)
            add(dataset, validators, first, last)
            truth |= {(v, e) for v in validators for e in range(first, last + 1)}
        found = dataset.scan("t").collect()

        assert len(truth) == found.height
        assert truth == set(found.select("validator", "epoch").iter_rows())
        assert found.equals(
            found.with_columns(reward=pl.col("validator") * 1_000_003 + pl.col("epoch"))
        )

    def test_several_in_one_commit(self, dataset):
        """Rows that overlap within a commit are stored once, in one sorted segment."""
        with dataset.writing() as writer:
            for validators, epochs in [([3, 1], range(5, 10)), ([1, 2], range(8))]:
                writer.add_covered(
                    "t",
                    rows(validators, epochs),
                    GRID,
                    {str(v): ((epochs[0], epochs[-1]),) for v in validators},
                )

        expected = pl.concat([rows([1], range(10)), rows([2], range(8)), rows([3], range(5, 10))])
        assert expected.equals(dataset.scan("t").collect())
        assert 1 == len(dataset.segments("t"))

    def test_all_or_nothing(self, dataset):
        """A failed commit stores neither rows nor coverage."""

        def fail():
            with dataset.writing() as writer:
                writer.add_covered("t", rows([1], range(9)), GRID, {"1": ((0, 8),)})
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

        assert ({}, {}) == (dataset.coverage("t"), dataset.tables())

    def test_threads_that_add_the_same(self, dataset):
        """Eight threads add overlapping rectangles at once: no error, no duplicate row."""
        work = [
            threading.Thread(target=add, args=(dataset, range(n, n + 4), n * 3, n * 3 + 20))
            for n in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        found = dataset.scan("t").collect()

        cells = {
            (v, e) for n in range(8) for v in range(n, n + 4) for e in range(n * 3, n * 3 + 21)
        }
        assert cells == set(found.select("validator", "epoch").iter_rows())
        assert len(cells) == found.height

    def test_the_grid_of_a_table_cannot_change(self, dataset):
        """The grid of a table cannot change."""
        add(dataset, [1], 0, 1)

        with (
            pytest.raises(UsageError, match="table t is covered by other columns"),
            dataset.writing() as w,
        ):
            w.add_covered("t", rows([1], [5]), Grid(None, "epoch", ("epoch",)), {"": ((5, 5),)})


class TestSelecting:
    def test_by_subject_and_unit(self, dataset):
        """The rows of some subjects and some intervals of units, and no others."""
        for first in range(0, 300, 100):
            add(dataset, range(10), first, first + 99)

        found = read(dataset, [7, 3], (95, 104), (298, 310)).sort("validator", "epoch")
        assert rows([3, 7], [*range(95, 105), 298, 299]).equals(found)

    def test_segments_out_of_range_are_not_read(self, dataset):
        """The ledger stores the ranges, so only matching segments are read."""
        for first in range(0, 300, 100):
            add(dataset, range(10), first, first + 99)
        for path in sorted(dataset.path.glob("t/*.parquet"))[:2]:
            path.write_bytes(b"unreadable")

        assert rows(range(10), range(200, 300)).equals(read(dataset, range(10), (200, 299)))

    def test_a_selection_without_coverage_has_no_rows(self, dataset):
        """A selection without coverage has all columns and no rows."""
        assert rows([], []).equals(read(dataset, [1], (0, 9)))
        add(dataset, [1], 0, 9)
        assert rows([], []).equals(read(dataset, [2], (0, 9)))
        assert rows([], []).equals(read(dataset, [1], (50, 60)))


class TestCompacting:
    @pytest.fixture
    def scattered(self, dataset, monkeypatch):
        monkeypatch.setattr(segments, "ROWS", 200)
        for first in range(0, 200, 20):
            add(dataset, range(first % 40 // 20, 20, 2), first, first + 19)
        return dataset

    def test_sorted_in_few_segments(self, scattered):
        """The same rows and coverage, sorted by key, in few segments that do not overlap."""
        before, covered = scattered.scan("t").collect(), scattered.coverage("t")
        scattered.compact()

        found = read(scattered, range(20), (0, 199))
        assert before.sort("validator", "epoch").equals(found)
        assert covered == scattered.coverage("t")
        assert [200] * 10 == [segment.rows for segment in scattered.segments("t")]
        assert [] == scattered.verify()

    def test_small_segments_that_do_not_overlap_become_one(self, dataset):
        """A follower writes one small segment after the other."""
        for validator in range(5):
            add(dataset, [validator], 0, 9)
        dataset.compact()

        assert [50] == [segment.rows for segment in dataset.segments("t")]
        assert rows(range(5), range(10)).equals(read(dataset, range(5), (0, 9)))

    def test_again_changes_nothing(self, scattered):
        """Compacted segments stay unchanged, and later rows are compacted into the rest."""
        scattered.compact()
        first = scattered.segments("t")
        scattered.compact()
        assert first == scattered.segments("t")

        add(scattered, [19], 500, 509)
        scattered.compact()
        after = scattered.segments("t")
        assert first[:9] == after[:9]
        assert rows([19], range(500, 510)).equals(read(scattered, [19], (500, 600)))

    def test_old_files_stay_readable(self, scattered):
        """A LazyFrame from before stays valid; the old files are deleted an hour later."""
        lazy = scattered.select("t", None, [(0, 199)], schema=SCHEMA)
        before = lazy.collect().sort("validator", "epoch")
        scattered.compact()
        Dataset.open(scattered.path).write("other", [rows([1], [1])])

        assert before.equals(lazy.collect().sort("validator", "epoch"))
        assert 20 == len(list(scattered.path.glob("t/*.parquet")))

    @pytest.mark.parametrize("hours", [2, -24 * 365])
    def test_old_files_are_deleted(self, scattered, monkeypatch, hours):
        """The next commit deletes them after an hour, or when the clock was set back."""
        scattered.compact()
        later = time.time() + hours * 3_600
        monkeypatch.setattr(maintenance.time, "time", lambda: later)
        Dataset.open(scattered.path).write("other", [rows([1], [1])])

        assert 10 == len(list(scattered.path.glob("t/*.parquet")))
        assert 2_000 == scattered.scan("t").collect().height

    def test_rows_with_a_null_key_are_last(self, dataset, monkeypatch):
        """Rows with a null key are last, and none is missing."""
        monkeypatch.setattr(segments, "ROWS", 4)
        grid = Grid("validator", "epoch", ("reward", "epoch"))
        for epoch in range(8):
            frame = rows([1, 2], [epoch]).with_columns(
                reward=pl.when(pl.col("validator") == 2).then(epoch)
            )
            with dataset.writing() as writer:
                writer.add_covered(
                    "t", frame, grid, {"1": ((epoch, epoch),), "2": ((epoch, epoch),)}
                )
        dataset.compact()

        expected = [*range(8), *[None] * 8]
        assert expected == dataset.scan("t").collect()["reward"].to_list()

    @pytest.mark.more
    def test_compaction_reads_at_most_two_segments(self, dataset, monkeypatch):
        """Compaction reads at most two segments of rows at once."""
        monkeypatch.setattr(segments, "ROWS", 100)
        for first in range(0, 100, 10):
            add(dataset, range(50), first, first + 9)
        heights = []
        collect = pl.LazyFrame.collect

        def watched(self, *arguments, **options):
            frame = collect(self, *arguments, **options)
            if "reward" in frame.columns:
                heights.append(frame.height)
            return frame

        monkeypatch.setattr(pl.LazyFrame, "collect", watched)
        dataset.compact()

        assert (5_000, 200) == (sum(heights), max(heights))


class TestPruning:
    def test_subjects_and_units(self, dataset):
        """Pruned units have neither rows nor coverage; the others stay."""
        add(dataset, [1, 2, 3], 0, 99)
        dataset.prune("t", ["2"], first=10, last=19)

        assert ((0, 9), (20, 99)) == dataset.coverage("t")["2"]
        assert ((0, 99),) == dataset.coverage("t")["1"]
        expected = pl.concat(
            [rows([1], range(100)), rows([2], [*range(10), *range(20, 100)]), rows([3], range(100))]
        )
        assert expected.equals(dataset.scan("t").collect())

        add(dataset, [2], 0, 99)
        assert 300 == dataset.scan("t").collect().height

    def test_a_segment_without_a_pruned_row_keeps_its_file(self, dataset):
        """Its validators are 1 to 3, but it has no row of validator 2."""
        add(dataset, [1, 2, 3], 0, 9, rows([1, 3], range(10)))
        before = dataset.segments("t")
        dataset.prune("t", ["2"])

        assert before == dataset.segments("t")
        assert {"1", "3"} == dataset.coverage("t").keys()

    def test_a_whole_table(self, dataset):
        """A pruned table no longer exists, and can be created with other columns."""
        add(dataset, [1], 0, 99)
        dataset.prune("t")

        assert ({}, {}, {}) == (dataset.tables(), dataset.coverage("t"), dataset.grids())
        add(dataset, [1], 0, 9, rows([1], range(10)).with_columns(more=1))
        assert ["validator", "epoch", "reward", "more"] == dataset.scan("t").collect().columns

    def test_an_unknown_table_lists_those_with_coverage(self, dataset):
        """The error names the table, and lists the tables with coverage."""
        add(dataset, [1], 0, 9)

        with pytest.raises(UsageError, match=r"no coverage of a table 'x'\. It has: t"):
            dataset.prune("x")

    def test_numbers_are_never_used_twice(self, dataset):
        """A segment never gets the number of a removed one."""
        add(dataset, [1], 0, 9)
        dataset.prune("t")
        add(dataset, [1], 0, 9)

        assert ["000002"] == [segment.path[2:8] for segment in dataset.segments("t")]


class TestDamage:
    @pytest.fixture
    def damaged(self, dataset):
        for validators, first in [((1, 2), 0), ((1, 2), 100), ((8, 9), 0)]:
            add(dataset, validators, first, first + 99)
        add(dataset, [1], 200, 299)
        return dataset

    def harm(self, dataset, number, how):
        path = dataset.path / dataset.segments("t")[number].path
        content = bytearray(path.read_bytes())
        path.unlink()
        if how == "flip":
            content[len(content) // 2] ^= 4
        if how == "zero":
            content = bytearray(len(content))
        if how == "cut":
            del content[-7:]
        if how == "folder":
            path.mkdir()
        elif how == "link":
            (dataset.path / "away").write_bytes(content)
            path.symlink_to(dataset.path / "away")
        elif how != "gone":
            path.write_bytes(content)

    @pytest.mark.parametrize("is_read_before", [True, False])
    @pytest.mark.parametrize("how", ["flip", "zero", "cut", "folder", "link", "gone"])
    def test_a_file_that_changed_is_never_read(self, damaged, how, is_read_before):
        """A file that changed after it was written or read is an error; other rows can be read."""
        if is_read_before:
            assert 400 == read(damaged, [1, 2], (0, 199)).height
        self.harm(damaged, 1, how)

        with pytest.raises(DatasetError, match=r"table t of .* is damaged"):
            read(damaged, [1, 2], (0, 199))
        assert rows([1, 2], range(100)).equals(read(damaged, [1, 2], (0, 99)))

    @pytest.mark.parametrize("how", ["flip", "zero", "cut", "folder", "link", "gone"])
    def test_mend_removes_only_damaged_segments(self, damaged, how):
        """mend() removes the coverage of the damaged segment alone; its rows can be added again."""
        self.harm(damaged, 1, how)
        (found,) = damaged.mend()

        assert "t" == found.table
        assert [] == damaged.mend()
        assert {
            "1": ((0, 99), (200, 299)), "2": ((0, 99),), "8": ((0, 99),), "9": ((0, 99),)
        } == damaged.coverage("t")  # fmt: skip
        assert rows([1], [*range(100), *range(200, 300)]).equals(
            read(damaged, [1], (0, 999)).sort("epoch")
        )

    def test_mend_where_segments_overlap(self, dataset):
        """Rows of intact segments inside the range of a damaged one are removed too."""
        add(dataset, [1, 5], 0, 9)
        add(dataset, [3], 0, 99)
        self.harm(dataset, 0, "cut")
        dataset.mend()

        assert {"3": ((10, 99),)} == dataset.coverage("t")
        assert rows([3], range(10, 100)).equals(dataset.scan("t").collect())


def test_a_private_dataset_has_private_permissions(dataset):
    """Folders are 0700 and files 0600, including the ledger and its log."""
    add(dataset, [1], 0, 9)
    found = {"": stat.S_IMODE(dataset.path.stat().st_mode)}
    with dataset.writing():
        for path in dataset.path.rglob("*"):
            found[path.name] = stat.S_IMODE(path.stat().st_mode)
    folders, files = {"", "t"}, set(found) - {"", "t"}

    assert {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"} < files
    assert {0o700} == {found[name] for name in folders}
    assert {0o600} == {found[name] for name in files}


def test_a_public_dataset_has_default_permissions(tmp_path):
    """Without private=True the permissions follow the umask."""
    before = os.umask(0o022)
    dataset = Dataset.create(tmp_path / "open", meta={})
    add(dataset, [1], 0, 9)
    os.umask(before)

    assert 0o644 == stat.S_IMODE((dataset.path / dataset.segments("t")[0].path).stat().st_mode)


KILLED = """
import os, random, sys, threading, time
import polars as pl
from beaconframes.dataset import Dataset, Grid, segments
from beaconframes.sqlite_file import Database
data, seed = Dataset.open(sys.argv[1]), int(sys.argv[2])
segments.ROWS = 60
threading.Timer(random.Random(seed).uniform(0.0, 0.15), os._exit, [9]).start()
grid = Grid("validator", "epoch", ("validator", "epoch"))
schema = {"validator": pl.Int64, "epoch": pl.Int64, "reward": pl.Int64}
for first in range(0, 400, 10):
    missing = [v for v in range(5) if data.coverage("t", [str(v)], first=first, last=first + 9)
               != {str(v): ((first, first + 9),)}]
    if missing:
        rows = [(v, e, v * 1_000_003 + e) for v in missing for e in range(first, first + 10)]
        with data.writing() as writer:
            writer.add_covered("t", pl.DataFrame(rows, schema=schema, orient="row"), grid,
                        {str(v): ((first, first + 9),) for v in missing})
    if first % 50 == 40:
        data.compact()
print("done", flush=True)
os._exit(0)
"""


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize("kills", [200])
def test_killed_at_any_moment(dataset, kills, sample):
    """A process killed while it writes and compacts leaves no duplicate and no missing row."""
    finished, kills = 0, sample.limit(kills)
    for seed in range(kills):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(dataset.path), str(seed)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        finished += "done" in done.stdout
        assert done.returncode in {0, 9}, done.stderr
        covered = dataset.coverage("t")
        expected = pl.concat(
            [
                rows([], []),
                *(
                    rows([int(v)], range(a, b + 1))
                    for v, p in sorted(covered.items())
                    for a, b in p
                ),
            ]
        )
        if expected.height:
            assert expected.equals(dataset.scan("t").collect().sort("validator", "epoch"))
        assert [] == dataset.verify()
        if finished and seed < kills - 1:
            dataset.prune("t")
            finished = 0


def test_validators_are_not_pruned_from_a_table_of_the_whole_chain(tmp_path):
    """Its rows and its coverage stay; without one of them, the other would be wrong."""
    dataset = Dataset.create(tmp_path / "d", meta={})
    blocks = pl.DataFrame({"epoch": [0, 1]})
    with dataset.writing() as writer:
        writer.add_covered("blocks", blocks, Grid(None, "epoch", ("epoch",)), {"": ((0, 1),)})

    for subjects in (["5"], []):
        dataset.prune("blocks", subjects)

    assert ({"": ((0, 1),)}, 2) == (
        dataset.coverage("blocks"),
        dataset.scan("blocks").collect().height,
    )


def test_a_reader_without_write_access_sees_the_last_commits(tmp_path, monkeypatch):
    """A process that was killed after a commit leaves it in the write-ahead log."""
    script = f"""
import os
import polars as pl
from beaconframes.dataset import Dataset, ledger
dataset = Dataset.create({str(tmp_path / "d")!r}, meta={{}})
reading = ledger.read_transaction(dataset.path)
reading.__enter__().execute("SELECT * FROM meta")
for number in range(2):
    with dataset.writing() as writer:
        writer.add("t", pl.DataFrame({{"n": [number]}}))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (tmp_path / "d" / "ledger.sqlite-wal").stat().st_size
    can_access = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: mode != os.W_OK and can_access(p, mode))

    assert [0, 1] == Dataset.open(tmp_path / "d").scan("t").collect()["n"].to_list()
