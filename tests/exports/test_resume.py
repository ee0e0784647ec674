"""Exports that resume: after a kill, on a later day, beside another export."""

from __future__ import annotations

import errno
import functools
import json
import os
import random
import socket
from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.client import set_explorer
from beaconframes.dataset import Dataset
from beaconframes.errors import BeaconframesError, DatasetError, UsageError
from beaconframes.exports import dataset_writer, sorter, sources, work_folder

from ..support.faults import FaultServer

WANTED = {"validators": range(20), "since": 0}
JSON_SPACES = {b" ", b"\t", b"\n", b"\r"}


def files(folder):
    """Return the bytes of every file of a folder, without the history, which contains the time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "history.jsonl"
    }


def data(folder):
    return {name: content for name, content in files(folder).items() if "/" in name}


def rows(folder):
    found = pl.scan_parquet(folder / "income_history/**/*.parquet", hive_partitioning=False)
    return found.collect().sort("validator_index", "epoch")


def first_file(folder):
    return min(folder.rglob("*.parquet"))


def export(folder, **arguments):
    return bf.export(bf.load_income_history, folder, **{**WANTED, **arguments})


@pytest.fixture
def stored(running, tmp_path):
    """A local explorer, and a client with a store that loaders use."""
    known = {"chain": running.service.chain, "head": running.service.head}
    with bf.Explorer(running.url, store=tmp_path / "store", **known) as client:
        set_explorer(client)
        running.service.requests = 0
        yield running


class Cut(Exception):
    """The process ends here."""


def cut_after(monkeypatch, places):
    """Interrupt the export when it writes the file after that many."""
    from beaconframes.exports.table_writer import TableWriter

    real, left = TableWriter._write_draft, [places]

    def write(*arguments):
        if left[0] == 0:
            raise Cut
        left[0] -= 1
        return real(*arguments)

    monkeypatch.setattr(TableWriter, "_write_draft", write)


def cut(*_, **__):
    raise Cut


def cut_before_rename(monkeypatch, name):
    """Interrupt the export when the file of this name gets it."""
    real = work_folder.rename_draft

    def rename(draft, path):
        if path.name == name:
            raise Cut
        real(draft, path)

    monkeypatch.setattr(work_folder, "rename_draft", rename)


def test_interrupted_export_resumes(tmp_path, stored, monkeypatch):
    """K05: what was loaded is in the store, and the result has the same bytes."""
    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(Cut):
            export(tmp_path / "out", until=449)
    assert [] == list((tmp_path / "out").iterdir())
    before = stored.requests
    made = export(tmp_path / "out", until=449)
    assert (True, 3) == (made.complete, made.added)
    assert before > 4
    assert before == stored.requests
    export(tmp_path / "whole", until=449)
    assert files(tmp_path / "whole") == files(tmp_path / "out")


def test_an_export_after_an_interrupted_one_may_have_other_arguments(
    tmp_path, explorer, monkeypatch
):
    """Nothing was published, so nothing has to match."""
    frame = bf.load_income_history(range(20), since=0, until=9)
    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(Cut):
            export(tmp_path / "out", until=449)
    bf.export(frame, tmp_path / "out")
    bf.export(frame, tmp_path / "whole")
    assert files(tmp_path / "whole") == files(tmp_path / "out")


@pytest.mark.more
def test_export_interrupted_between_validators_resumes(tmp_path, explorer, monkeypatch):
    """The days of the first hundred validators are not finished while others are missing."""
    from beaconframes.exports.loader_calls import LoaderCall

    def export_slots(folder):
        return bf.export(bf.v2.load_proposal_slots, folder, validators=range(300), since=0)

    whole, real, loads = export_slots(tmp_path / "whole"), LoaderCall.load, []

    def load(self, **changes):
        loads.append(changes)
        if len(loads) == 2:
            raise Cut
        return real(self, **changes)

    with monkeypatch.context() as patch:
        patch.setattr(LoaderCall, "load", load)
        with pytest.raises(Cut):
            export_slots(tmp_path / "out")
    assert [100, 100] == [len(changes["validators"]) for changes in loads]
    assert whole.rows == export_slots(tmp_path / "out").rows
    assert files(tmp_path / "whole") == files(tmp_path / "out")


@pytest.mark.parametrize("moment", ["rename_draft", "append_history"])
@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda _: "{}", lambda _: ""])
def test_damaged_record_is_ignored(tmp_path, explorer, monkeypatch, damage, moment):
    """Whatever happened to the record of a killed export, the result has every row."""
    export(tmp_path / "whole", until=449)
    target = tmp_path / "out"
    with monkeypatch.context() as patch:
        if moment == "rename_draft":
            cut_before_rename(patch, "README.md")
        else:
            patch.setattr(dataset_writer, moment, cut)
        with pytest.raises(Cut):
            export(target, until=449)
    path = target / work_folder.WORK_FOLDER / work_folder.PUBLISHING
    path.write_text(damage(path.read_text()))
    export(target, until=449)
    assert files(tmp_path / "whole") == files(target)


def test_export_interrupted_after_the_manifest_resumes(tmp_path, explorer, monkeypatch):
    """The manifest exists and the working folder, too: no row is exported twice."""
    export(tmp_path / "whole", until=200)

    def remember(*_, **__):
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(dataset_writer, "append_history", remember)
        with pytest.raises(Cut):
            export(tmp_path / "out", until=200)
    assert (tmp_path / "out/manifest.json").exists()
    assert (tmp_path / "out" / work_folder.WORK_FOLDER).exists()
    export(tmp_path / "out", until=200)
    assert files(tmp_path / "whole") == files(tmp_path / "out")


def test_export_killed_while_files_get_their_names_does_not_block_another(tmp_path, monkeypatch):
    """Its data file and its README have their names, but they are in no manifest."""
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        cut_before_rename(patch, "CITATION.cff")
        with pytest.raises(Cut):
            bf.export(pl.DataFrame({"x": [1, 2]}), out)
    assert {"README.md", "00000.parquet"} <= {path.name for path in out.rglob("*")}
    for folder in (out, tmp_path / "whole"):
        bf.export(pl.DataFrame({"y": [5]}), folder)
    assert files(tmp_path / "whole") == files(out)


def test_the_folders_of_withdrawn_files_are_removed(tmp_path, monkeypatch):
    """A killed export has divided its rows by day, and the next one has other days."""
    days = pl.datetime_range(
        datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 4, tzinfo=UTC), "1d", eager=True
    )
    rows = pl.DataFrame({"time": days, "epoch": range(4)})
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        cut_before_rename(patch, "CITATION.cff")
        with pytest.raises(Cut):
            bf.export(rows[:3], out)
    assert 3 == len([*out.rglob("date=*")])

    bf.export(rows[2:], out)

    assert ["date=2026-10-03", "date=2026-10-04"] == sorted(p.name for p in out.rglob("date=*"))


def test_refused_export_after_a_killed_one_leaves_no_file(tmp_path, monkeypatch):
    """Its data files and its working folder are removed; the documents are replaced later."""
    out = tmp_path / "out"
    bf.export(pl.DataFrame({"x": [1]}), out)
    before = files(out)
    with monkeypatch.context() as patch:
        cut_before_rename(patch, "CITATION.cff")
        with pytest.raises(Cut):
            bf.export(pl.DataFrame({"x": [1, 2]}), out)
    with pytest.raises(DatasetError, match="1 of them are not among"):
        bf.export(pl.DataFrame({"x": [5]}), out)
    assert before.keys() == files(out).keys()
    bf.export(pl.DataFrame({"x": [1]}), out)
    assert before == files(out)


def test_unchanged_files_are_compared_by_their_hash(tmp_path, monkeypatch):
    """The same export again reads no row; a new row is compared with the published ones."""
    from beaconframes.exports.table_writer import TableWriter

    rows = pl.DataFrame({"x": [1, 1, 2]})
    bf.export(rows, tmp_path)
    bf.export(pl.concat([rows, rows]), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(TableWriter, "_read_files", cut)
        bf.export(rows, tmp_path / "other")
        assert (3, 0, 1) == counts(bf.export(rows, tmp_path / "other"))
    # The file of the first export has half of the published rows.
    with pytest.raises(DatasetError, match="6 published rows, and 3 of them are not among"):
        bf.export(rows, tmp_path)


def counts(made):
    return made.rows, made.added, made.unchanged


def test_iterator_equals_a_list(tmp_path, explorer):
    """An iterator of validators is read once, before the loader is called."""
    few = {"since": 0, "until": 5}
    export(tmp_path / "list", validators=[1, 2, 3], **few)
    made = export(tmp_path / "iterator", validators=iter([1, 2, 3]), **few)
    assert 18 == made.rows
    call = functools.partial(bf.load_income_history, (n for n in [1, 2, 3]), **few)
    bf.export(call, tmp_path / "partial")
    for kind in ("iterator", "partial"):
        assert files(tmp_path / "list") == files(tmp_path / kind)


def test_duplicate_validator_is_exported_once(tmp_path, explorer):
    """An index and a public key may name the same validator."""
    keys = bf.load_validators([2, 3])["pubkey"].to_list()
    few = {"since": 0, "until": 5, "by": "validators"}
    assert 6 == export(tmp_path / "one", validators=[2, keys[0]], **few).rows
    made = export(tmp_path / "out", validators=[*keys, 2, 1], **few)
    assert (18, True) == (made.rows, made.complete)
    export(tmp_path / "plain", validators=[1, 2, 3], **few)
    assert data(tmp_path / "plain") == data(tmp_path / "out")


@pytest.mark.parametrize("places", [1, 2])
def test_interrupted_export_with_public_keys_resumes(tmp_path, explorer, monkeypatch, places):
    """No row is exported twice."""
    (key,) = bf.load_validators([3])["pubkey"]
    few = {"validators": [1, 1001, key], "since": 460, "until": 465, "by": "validators"}
    export(tmp_path / "whole", **few)
    with monkeypatch.context() as patch:
        cut_after(patch, 1) if places == 1 else patch.setattr(dataset_writer, "build_manifest", cut)
        with pytest.raises(Cut):
            export(tmp_path / "out", **few)
    assert 18 == export(tmp_path / "out", **few).rows
    assert files(tmp_path / "whole") == files(tmp_path / "out")


def test_files_by_validators_are_complete_before_the_next_validators(
    tmp_path, explorer, monkeypatch
):
    """Otherwise all rows would be requested again."""
    from beaconframes.exports import chunked_load, partitions

    reads, load_frames = [], chunked_load.ChunkedLoad.load_frames

    monkeypatch.setattr(chunked_load, "CHUNK_ROWS", 40)
    for module in (chunked_load, partitions):
        monkeypatch.setattr(module, "VALIDATORS_PER_PARTITION", 10)
    monkeypatch.setattr(
        chunked_load.ChunkedLoad, "load_frames", lambda load: reads.append(1) or load_frames(load)
    )
    made = export(tmp_path, until=250, by="validators")
    assert (20 * 251, 2, [1]) == (made.rows, made.added, reads)


def test_days_of_several_calls_are_requested_once(tmp_path, explorer, monkeypatch):
    """Each call has two days of some validators, so the first day follows the second one."""
    from beaconframes.exports import chunked_load

    reads, load_frames = [], chunked_load.ChunkedLoad.load_frames

    monkeypatch.setattr(chunked_load, "CHUNK_ROWS", 10_000)
    monkeypatch.setattr(
        chunked_load.ChunkedLoad, "load_frames", lambda load: reads.append(1) or load_frames(load)
    )
    made = export(tmp_path, validators=range(120), until=120)
    assert (120 * 121, 2, [1]) == (made.rows, made.added, reads)


def test_a_dataset_is_read_in_the_order_of_epochs(tmp_path, monkeypatch):
    """No request limits the validators of a call, so files need not wait for the end of a day."""
    from beaconframes.exports import chunked_load
    from beaconframes.exports.loader_calls import LoaderCall

    calls, load = [], LoaderCall.load

    def record(self, **changes):
        calls.append((len(changes["validators"]), changes["until"] - changes["since"] + 1))
        return load(self, **changes)

    monkeypatch.setattr(chunked_load, "CHUNK_ROWS", 600)
    monkeypatch.setattr(LoaderCall, "load", record)
    with bf.open() as sample:
        last = sample.chain_head.latest("epoch", finalized=True)
        export(tmp_path, validators=range(300), since=last - 4, until=last)
    assert [(300, 2), (300, 2), (300, 1)] == calls


def test_unknown_public_key_is_a_gap(tmp_path, explorer):
    """It stays a gap, and the same export adds nothing."""
    unknown = f"0x{'ab' * 48}"
    few = {"validators": [2, unknown], "since": 0, "until": 5}
    for added in (1, 0):
        made = export(tmp_path / "out", **few)
        assert (6, added, ({"pubkey": unknown, "reason": "unknown to the service"},)) == (
            made.rows,
            made.added,
            made.gaps,
        )


@pytest.mark.parametrize(
    ("loader", "wanted"),
    [
        (bf.load_income_history, WANTED),
        (bf.load_slots, {"slots": range(14_320, 14_350)}),
        pytest.param(bf.load_slots, {"slots": range(14_328, 14_344, 2)}, marks=pytest.mark.more),
    ],
)
def test_export_adds_what_became_final(tmp_path, running, monkeypatch, loader, wanted):
    """An export that was interrupted before has the rows that are final when it runs again."""
    known = {"url": running.url, "chain": running.service.chain}
    head = running.service.head
    early = replace(head, finalized_epoch=head.finalized_epoch - 20)
    with bf.Explorer(head=early, **known) as client:
        first = bf.export(loader, tmp_path / "extended", explorer=client, **wanted)
        with monkeypatch.context() as patch:
            patch.setattr(dataset_writer, "build_manifest", cut)
            with pytest.raises(Cut):
                bf.export(loader, tmp_path / "out", explorer=client, **wanted)
    with bf.Explorer(head=head, **known) as client:
        resumed, extended, whole = (
            bf.export(loader, tmp_path / name, explorer=client, **wanted)
            for name in ("out", "extended", "whole")
        )
    assert first.rows < extended.rows == resumed.rows == whole.rows
    assert extended.until == resumed.until == whole.until
    assert files(tmp_path / "whole") == files(tmp_path / "out")


@pytest.mark.more
def test_listed_slots_match_or_are_refused(tmp_path, explorer):
    """Slots between the listed ones are not requested."""
    out = tmp_path / "out"
    assert 2 == bf.export(bf.load_slots, out, slots=[0, 50]).rows
    before = files(out)
    for slots, words in (
        (range(51), "dataset has 0-0,50-50, and this export every slot"),
        ([0, 30, 50, 60], "dataset has 0-0,50-50, and this export 0-0,30-30,50-50"),
        ([50], "starts at slot 0, and this export at 50"),
        ([0], "ends at slot 50, and this export at 0"),
    ):
        with pytest.raises(DatasetError, match=words):
            bf.export(bf.load_slots, out, slots=slots)
        assert before == files(out)
    made = bf.export(bf.load_slots, out, slots=[0, 50, 60, 61])
    assert (4, 1) == (made.rows, made.added)
    assert [0, 50, 60, 61] == Dataset.open(out).scan("slots").collect()["slot"].to_list()
    assert 51 == bf.export(bf.load_slots, tmp_path / "every", slots=range(51)).rows
    assert 61 == bf.export(bf.load_slots, tmp_path / "every", slots=range(61)).rows


@pytest.mark.parametrize(("later", "earlier"), [("2h", "40h"), (-10, -30), (None, 0)])
def test_earlier_since_is_refused(tmp_path, explorer, later, earlier):
    """A relative since only moves forward: earlier rows were never requested."""
    made = export(tmp_path / "out", since=later)
    with pytest.raises(DatasetError, match=r"starts at epoch \d+, and this export at \d+"):
        export(tmp_path / "out", since=earlier)
    assert (made.rows, 0) == ((again := export(tmp_path / "out", since=later)).rows, again.added)


@pytest.mark.parametrize(
    ("first", "then", "added"),
    [([1, 2], [1, 1, 2, 3], [1, 3]), ([1, 1], [1, 1, 1], [1]), ([2, 2, 1], [1, 2, 2], [])],
)
def test_duplicate_rows_are_counted(tmp_path, first, then, added):
    """Only additional occurrences of a row are added."""
    bf.export(pl.DataFrame({"x": first, "also": [[0]] * len(first)}), tmp_path)
    frame = pl.DataFrame({"x": then, "also": [[0]] * len(then)})
    for _ in range(2):
        assert len(then) == bf.export(frame, tmp_path).rows
    files = sorted((tmp_path / "rows").iterdir())
    assert added == [x for file in files[1:] for x in pl.read_parquet(file)["x"]]


@pytest.mark.parametrize(("first", "then"), [([1, 2], [1, 1, 3]), ([1, 1], [1, 2])])
def test_duplicate_row_does_not_replace_another(tmp_path, first, then):
    """All published rows must be among the exported ones, as often as before."""
    bf.export(pl.DataFrame({"x": first}), tmp_path)
    with pytest.raises(DatasetError, match="1 of them are not among"):
        bf.export(pl.DataFrame({"x": then}), tmp_path)


@pytest.mark.more
@pytest.mark.parametrize(
    ("most", "more"),
    [
        (3_000, True),
        (262_144, False),
        pytest.param(3_000, False, marks=pytest.mark.more),
        pytest.param(262_144, True, marks=pytest.mark.more),
    ],
)
def test_shuffled_rows_add_nothing(tmp_path, monkeypatch, most, more):
    """Also if a day is started, left and continued, or has more rows than before."""
    monkeypatch.setattr(sorter, "ROWS", most)
    monkeypatch.setattr(sorter, "SPILL_BYTES", 0)
    monkeypatch.setattr(sorter, "PARTITION_BYTES", 0)
    monkeypatch.setattr(sources, "BATCH_ROWS", 1000)

    def page(day, first, rows=5_000):
        time = pl.datetime(2026, 1, day, time_zone="UTC").alias("time")
        return pl.select(time, epoch=pl.int_range(first, first + rows))

    pages = [page(1, 0), page(2, 10_000), page(1, 5_000), page(1, 5_000), page(3, 30_000)]
    whole = bf.export(pl.concat(pages), tmp_path / "out", name="same")
    before = data(tmp_path / "out")
    if more:
        pages[3:3] = [page(2, 20_000)]
    again = bf.export(pl.concat(pages), tmp_path / "out", name="same")
    assert (whole.rows + 5_000 * more, more) == (again.rows, again.added > 0)
    after = data(tmp_path / "out")
    assert before == {name: after[name] for name in before}
    there = pl.concat(pl.read_parquet(path) for path in (tmp_path / "out").rglob("*.parquet"))
    assert pl.concat(pages).sort("time", "epoch").equals(there.sort("time", "epoch"))
    with pytest.raises(DatasetError, match="are not among"):
        bf.export(pl.concat([*pages[:2], page(1, 5_000)]), tmp_path / "out", name="same")


def test_row_without_a_number_in_its_key_is_found_again(tmp_path, monkeypatch):
    """The range of a file does not say whether it has such rows."""
    columns = ("credentials", "validator_index", "pubkey")
    rows = pl.DataFrame([("0x01", None, "0xa"), ("0x03", 9, "0xb")], columns, orient="row")
    more = pl.DataFrame([("0x02", 5, "0xc")], columns, orient="row")
    bf.export(rows, tmp_path)
    for module in ("exports.sorter", "dataset.segments"):
        monkeypatch.setattr(f"beaconframes.{module}.ROWS", 2)
    assert (3, 1, 1) == counts(bf.export(pl.concat([rows, more]), tmp_path))


def test_second_loader_in_a_folder_has_all_its_rows(tmp_path, explorer):
    """It does not continue after the rows of the first one."""
    bf.export(bf.load_balance_history, tmp_path, validators=[1], since=0, until=5)
    assert 10 == export(tmp_path, validators=[1], until=9).rows


def test_service_that_is_behind_is_accepted(tmp_path, running):
    """Relative bounds move back with the head of the service: no row is missing or doubled."""
    known = {"url": running.url, "chain": running.service.chain}
    head = running.service.head
    behind = replace(head, finalized_epoch=head.finalized_epoch - 1)
    rows = []
    for now in (head, behind, head):
        with bf.Explorer(head=now, **known) as client:
            rows.append(export(tmp_path / "out", since=-30, explorer=client).rows)
    assert rows == rows[:1] * 3


@pytest.mark.more
def test_later_export_adds_final_epochs(tmp_path, explorer):
    """Published files keep their bytes; new epochs are new files."""
    export(tmp_path / "out", until=200)
    before, requests = data(tmp_path / "out"), explorer.requests
    made = export(tmp_path / "out", until=449)
    after = data(tmp_path / "out")
    assert before == {name: after[name] for name in before}
    assert (len(before), len(after) - len(before)) == (made.unchanged, made.added)
    # 249 epochs in three windows.
    assert 3 == explorer.requests - requests
    expected = bf.load_income_history(range(20), since=0, until=449)
    assert expected.equals(rows(tmp_path / "out"))
    again = export(tmp_path / "out", until=449)
    assert (0, after) == (again.added, data(tmp_path / "out"))
    assert 2 == len((tmp_path / "out/history.jsonl").read_text().splitlines())


def test_export_ends_at_the_finalized_epoch(tmp_path, explorer):
    """K12: without until it ends at the finalized epoch, and reports it."""
    final = explorer.service.head.finalized_epoch
    made = export(tmp_path / "out", since=400)
    assert final == made.until == rows(tmp_path / "out")["epoch"].max()
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert final == manifest["provenance"]["finalized_epoch"]


NEWEST = {"validators": [1, 2], "since": 460, "until": 469}
"""Ten epochs up to the head; the last two are not final."""


def test_units_that_are_not_final_are_gaps(tmp_path, explorer):
    """C7: an export that ends before the requested epoch is not complete, and says why."""
    late = ({"first_epoch": 468, "last_epoch": 469, "reason": "not final yet"},)
    part = bf.export(bf.load_balance_history, tmp_path / "part.csv", **NEWEST)
    none = bf.export(bf.load_balance_history, tmp_path / "none.csv", validators=[1], since=-2)

    assert [(2 * 8, late, False), (0, late, False)] == [
        (made.rows, made.gaps, made.complete) for made in (part, none)
    ]
    assert repr(none).endswith(", 1 gaps (rows not final yet))")
    slots = bf.export(bf.load_slots, tmp_path / "slots.csv", slots=[3200, 469 * 32])
    assert [{"first_slot": 469 * 32, "last_slot": 469 * 32, "reason": "not final yet"}] == [
        *slots.gaps
    ]


def test_units_that_became_final_are_added(tmp_path, running):
    """C7: the same call adds them to the dataset, and closes the gap."""
    known = {"url": running.url, "chain": running.service.chain}
    wanted = {**NEWEST, "until": 467}
    early = replace(running.service.head, epoch=467, finalized_epoch=465)
    with bf.Explorer(head=early, **known) as client:
        made = bf.export(bf.load_balance_history, tmp_path / "out", explorer=client, **wanted)
    with bf.Explorer(head=running.service.head, **known) as client:
        again = bf.export(bf.load_balance_history, tmp_path / "out", explorer=client, **wanted)

    assert [(2 * 6, False), (2 * 8, True)] == [(e.rows, e.complete) for e in (made, again)]


def test_rows_that_are_not_final_are_exported_on_request(tmp_path, explorer):
    """C7: a column marks them; the manifest has the final epoch; the dataset cannot be extended."""
    path, out = tmp_path / "rows.parquet", tmp_path / "out"
    made = bf.export(bf.load_balance_history, path, unfinalized=True, **NEWEST)
    bf.export(bf.load_balance_history, out, unfinalized=True, **NEWEST)

    expected = bf.load_balance_history([1, 2], since=460, until=469)
    final = pl.col("epoch") <= explorer.service.head.finalized_epoch
    assert expected.with_columns(finalized=final).equals(pl.read_parquet(path))
    assert (True, 469) == (made.complete, made.until)
    manifest = json.loads((out / "manifest.json").read_text())
    assert explorer.service.head.finalized_epoch == manifest["provenance"]["finalized_epoch"]
    assert manifest["tables"]["balance_history"]["request"]["unfinalized"] is True
    with pytest.raises(DatasetError, match=r"columns\.finalized was Boolean, now it is nothing"):
        bf.export(bf.load_balance_history, out, **NEWEST)


@pytest.mark.parametrize("unfinalized", [False, True])
def test_a_public_key_has_the_final_rows_of_its_index(tmp_path, explorer, unfinalized):
    """Validators of V2 by key, and sets, are loaded in one call."""
    pubkey = bf.load_validators([1])["pubkey"][0]
    for validator in (1, pubkey):
        path = tmp_path / f"{str(validator)[:4]}.parquet"
        made = bf.export(
            bf.v2.load_balances,
            path,
            **{**NEWEST, "validators": [validator]},
            unfinalized=unfinalized,
        )
        epochs = pl.read_parquet(path)["epoch"]
        assert [*range(460, 470 if unfinalized else 468)] == epochs.to_list()
        assert unfinalized == made.complete
    assert pl.read_parquet(tmp_path / "1.parquet").equals(pl.read_parquet(path))


def test_slots_that_are_not_final_are_exported_on_request(tmp_path, running):
    """C7: rows without a range of epochs are marked by their slot; frames have no finality."""
    early = replace(running.service.head, epoch=302, finalized_epoch=300)
    path = tmp_path / "rows.parquet"
    with bf.Explorer(running.url, chain=running.service.chain, head=early) as client:
        wanted = {"validators": range(1010), "explorer": client}
        made = bf.export(bf.load_bls_changes, path, unfinalized=True, **wanted)
    found = pl.read_parquet(path)

    assert made.complete
    assert {True, False} == {*found["finalized"]}
    assert found["finalized"].equals((found["slot"] < 301 * 32).rename("finalized"))
    with pytest.raises(UsageError, match="unfinalized=True is for loaders"):
        bf.export(found, tmp_path / "frame.parquet", unfinalized=True)


def test_rows_that_are_not_final_are_gaps(tmp_path, running):
    """Also for loaders without until: credential changes and blocks."""
    out, every = tmp_path / "out", running.service.head
    early = replace(every, epoch=302, finalized_epoch=300)
    known = {"url": running.url, "chain": running.service.chain}
    wanted = {"validators": range(1010)}
    with bf.Explorer(head=early, **known) as client:
        made = bf.export(bf.load_bls_changes, out, explorer=client, **wanted)
    with bf.Explorer(head=every, **known) as client:
        truth = bf.load_bls_changes(explorer=client, **wanted)
        later = truth.filter(pl.col("slot") > 301 * 32 - 1)
        assert 0 < later.height < truth.height
        there = Dataset.open(out).scan("bls_changes").collect()
        assert truth.filter(pl.col("slot") < 301 * 32).equals(there.sort("validator_index"))
        assert not made.complete
        assert set(later.select("validator_index", "slot").iter_rows()) == {
            (gap["validator_index"], gap["slot"]) for gap in made.gaps
        }
        assert "not final yet" in (out / "README.md").read_text()
        again = bf.export(bf.load_bls_changes, out, explorer=client, **wanted)
    assert (again.complete, again.rows) == (True, truth.height)
    there = Dataset.open(out).scan("bls_changes").collect()
    assert truth.equals(there.sort("validator_index"))


@pytest.mark.more
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"validators": range(21)}, "validators was 0-19, now it is 0-20"),
        ({"since": 1}, "starts at epoch 0, and this export at 1"),
        ({"until": 150}, "ends at epoch 200, and this export at 150"),
        ({"format": "csv"}, "format was parquet, now it is csv"),
        ({"by": "period"}, "partitioned_by was day, now it is period"),
        ({"raw": True}, "raw was False, now it is True"),
    ],
)
def test_mismatch_is_refused_with_the_difference(tmp_path, explorer, arguments, words):
    """K10: another selection, format or partition makes another dataset."""
    export(tmp_path / "out", until=200)
    before = files(tmp_path / "out")
    with pytest.raises(DatasetError, match=words):
        export(tmp_path / "out", **{"until": 200, **arguments})
    assert before == files(tmp_path / "out")


def test_other_service_or_chain_is_refused(tmp_path, explorer, chain):
    """K10: a dataset has one service and one chain."""
    export(tmp_path / "out", until=200)
    frame = bf.load_income_history(range(20), since=0, until=200)
    with pytest.raises(DatasetError, match="service was a service on this machine"):
        bf.export(frame, tmp_path / "out")


def test_changed_rows_are_refused(tmp_path, explorer):
    """A frame may add rows; it may not remove or change published ones."""
    frame = bf.load_income_history(range(20), since=0, until=300)
    bf.export(frame.filter(pl.col("epoch") < 250), tmp_path / "out")
    before = data(tmp_path / "out")
    bf.export(frame, tmp_path / "out")
    assert frame.equals(rows(tmp_path / "out"))
    assert before == {name: data(tmp_path / "out")[name] for name in before}
    changed = frame.with_columns(pl.col("attestation_head_reward_gwei") + 1)
    with pytest.raises(DatasetError, match="2,260 of them are not among"):
        bf.export(changed, tmp_path / "out")
    assert frame.equals(rows(tmp_path / "out"))


@pytest.mark.parametrize("damaged", ["data", "manifest", "name"])
def test_changed_published_file_is_found(tmp_path, explorer, damaged):
    """K11: an edited, truncated or moved file is found by its hash before anything is added."""
    export(tmp_path / "out", until=200)
    manifest = tmp_path / "out/manifest.json"
    if damaged == "data":
        path = first_file(tmp_path / "out")
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        words = "does not have the content that was written"
    elif damaged == "manifest":
        manifest.write_text(manifest.read_text().replace('"until": 200', '"until": 100'))
        words = "was edited"
    else:
        values = json.loads(manifest.read_text())
        values["tables"]["income_history"]["files"][0]["path"] = "../../etc/passwd"
        from beaconframes.dataset.published import checksum

        manifest.write_text(json.dumps({**values, "checksum": checksum(values)}))
        words = "outside of its dataset"
    with pytest.raises(DatasetError, match=words):
        export(tmp_path / "out", until=300)


def test_gaps_of_several_days_are_requested_once(tmp_path, explorer, monkeypatch):
    """Rows of an earlier day follow those of a later one, and are not loaded again for it."""
    from beaconframes.exports.loader_calls import LoaderCall

    real, calls = LoaderCall.load, []
    missing = {7: (100, 130), 8: (104, 106)}

    def lossy(self, **instead):
        found, gaps = real(self, **instead)
        for index, (first, last) in missing.items():
            run = {"validator_index": index, "first_epoch": first, "last_epoch": last}
            gaps = [*gaps, run]
            found = found.filter(
                (pl.col("validator_index") != index) | ~pl.col("epoch").is_between(first, last)
            )
        return found, gaps

    def count(self, **instead):
        calls.append(instead["validators"])
        return real(self, **instead)

    with monkeypatch.context() as patch:
        patch.setattr(LoaderCall, "load", lossy)
        assert 2 == len(export(tmp_path, until=300).gaps)
    monkeypatch.setattr(LoaderCall, "load", count)

    assert export(tmp_path, until=300).complete
    assert [[7], [8]] == calls
    assert bf.load_income_history(range(20), since=0, until=300).equals(rows(tmp_path))


@pytest.mark.more
def test_gaps_are_listed_and_filled(tmp_path, explorer, monkeypatch):
    """K14: missing rows are listed in the manifest; the next export loads them."""
    from beaconframes.exports.loader_calls import LoaderCall

    real = LoaderCall.load

    def lossy(self, **instead):
        found, gaps = real(self, **instead)
        missing_rows = (pl.col("validator_index") == 7) & pl.col("epoch").is_between(90, 109)
        missing = found.filter(missing_rows)["epoch"]
        if not missing.is_empty():
            run = {"first_epoch": missing.min(), "last_epoch": missing.max()}
            gaps = [*gaps, {"validator_index": 7, **run}]
        return found.filter(~missing_rows), gaps

    with monkeypatch.context() as patch:
        patch.setattr(LoaderCall, "load", lossy)
        made = export(tmp_path / "out", until=200)
        assert not made.complete
        expected = {"validator_index": 7, "first_epoch": 90, "last_epoch": 109}
        assert (expected,) == made.gaps
        again = export(tmp_path / "out", until=200)
        assert (expected,) == again.gaps
        cut_after(patch, 1)
        with pytest.raises(Cut):
            export(tmp_path / "cut", until=300)
        patch.undo()
        patch.setattr(LoaderCall, "load", lossy)
        assert (expected,) == export(tmp_path / "cut", until=300).gaps
    page = (tmp_path / "out/README.md").read_text()
    assert "validator_index 7, first_epoch 90, last_epoch 109" in page
    before = data(tmp_path / "out")
    made = export(tmp_path / "out", until=200)
    assert made.complete
    assert bf.load_income_history(range(20), since=0, until=200).equals(rows(tmp_path / "out"))
    assert before == {name: data(tmp_path / "out")[name] for name in before}


def test_a_gap_of_one_slot_is_filled_without_the_rest_of_its_epoch(tmp_path, explorer, monkeypatch):
    """Its epoch is requested again, and 31 of the slots are published."""
    from beaconframes.exports.loader_calls import LoaderCall

    real, missing = LoaderCall.load, {"first_epoch": 9, "last_epoch": 9}
    missing |= {"first_slot": 290, "last_slot": 290}
    wanted = {"what": bf.load_epoch_slots, "target": tmp_path / "out", "since": 8, "until": 10}

    def lossy(self, **instead):
        found, gaps = real(self, **instead)
        return found.filter(pl.col("slot") != 290), [*gaps, missing]

    with monkeypatch.context() as patch:
        patch.setattr(LoaderCall, "load", lossy)
        assert (95, (missing,)) == ((made := bf.export(**wanted)).rows, made.gaps)
    made = bf.export(**wanted)

    assert (96, True) == (made.rows, made.complete)
    found = Dataset.open(tmp_path / "out").scan("epoch_slots").collect()
    assert bf.load_epoch_slots(since=8, until=10).equals(found.sort("slot"))


def test_epochs_outside_of_active_periods_are_not_gaps(tmp_path, explorer):
    """Validators that are not active have no rows; one request checks a hundred of them."""
    late = range(990, 1010)
    validators = bf.load_validators(late)
    assert validators["activation_epoch"].null_count() > 0
    assert validators["activation_epoch"].max() > 100
    for loader in (bf.load_income_history, bf.load_balance_history):
        requests = explorer.requests
        made = bf.export(loader, tmp_path / loader.__name__, validators=late, since=0, until=99)
        assert (True, ()) == (made.complete, made.gaps)
        # One window of a hundred epochs, and the active periods.
        assert explorer.requests - requests <= 2
    found = bf.export(
        bf.load_validator_stats, tmp_path / "stats", validators=late, since="2026-10-01"
    )
    assert found.complete


def test_lock_of_a_dead_process_is_taken_over(tmp_path, explorer):
    """K09: the error names the running export; after its process died, the next one takes over."""
    (tmp_path / "out").mkdir()
    with work_folder.open_work_folder(tmp_path / "out", tmp_path / "out" / work_folder.WORK_FOLDER):
        words = f"is running: process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(DatasetError, match=words):
            export(tmp_path / "out", until=100)
    export(tmp_path / "out", until=100)
    (tmp_path / "out" / work_folder.WORK_FOLDER).mkdir()
    holder = tmp_path / "out" / work_folder.WORK_FOLDER / work_folder.HOLDER
    holder.write_text(json.dumps({"pid": 1, "host": "another-host"}))
    with pytest.raises(DatasetError, match="process 1 on another-host"):
        export(tmp_path / "out", until=100)
    holder.write_text(json.dumps({"pid": 999_999_999, "host": socket.gethostname()}))
    assert export(tmp_path / "out", until=100).complete
    assert not (tmp_path / "out" / work_folder.WORK_FOLDER).exists()


def test_work_folder_is_removed(tmp_path, explorer):
    """Lock, drafts and record are removed when an export is finished."""
    export(tmp_path / "out", until=100)
    assert [] == list((tmp_path / "out").rglob(".*"))


ACTIVE = range(100, 150)
"""Validators with a row in each of the requested epochs."""


SERVICE_FAULTS = (
    "rows_drop?path=/balance&every=7",
    "rows_drop?path=/balance&every=7&times=1",
    "rows_empty?path=/balance&times=2",
    "rows_dup",
    "rows_shuffle",
    "5xx?status=502&times=2",
    "429_storm?times=3",
    "429_none?times=2",
    "429_html?times=1",
    "db_error_400?times=1",
    "drop?times=2",
    "rst?times=1",
    "disconnect_mid_body?fraction=0.5&times=2",
    "truncated_json?fraction=0.5&times=2",
    "gzip_truncated?fraction=0.5&times=1",
    "length_short?fraction=0.5&times=1",
    "200_html?times=1",
    "empty_200?times=1",
)


def export_with_fault(url, running, fault, target, wanted):
    """Export from a service with a fault, and retry until the export ends."""
    known = {"chain": running.service.chain, "head": running.service.head, "rate": 10_000}
    with FaultServer(fault, upstream=url) as server:
        for _ in range(5):
            with bf.Explorer(server.url, **known) as damaged:
                try:
                    return bf.export(bf.load_balance_history, target, explorer=damaged, **wanted)
                except BeaconframesError:
                    # The error was raised, and nothing is published.
                    assert not (target / "manifest.json").exists()
    return None


@pytest.mark.long
@pytest.mark.parametrize("fault", SERVICE_FAULTS)
def test_faulty_service_makes_listed_gaps(tmp_path, running, fault):
    """K14: missing rows are listed in the manifest; the next export loads them."""
    wanted = {"validators": ACTIVE, "since": 310, "until": 400}
    known = {"chain": running.service.chain, "head": running.service.head, "rate": 10_000}
    with bf.Explorer(running.url, **known) as well:
        truth = bf.load_balance_history(ACTIVE, since=310, until=400, explorer=well)
        made = export_with_fault(running.url, running, fault, tmp_path / "out", wanted)
        if made is not None:
            there = Dataset.open(tmp_path / "out").scan("balance_history").collect()
            missing_rows = truth.join(there, on=["validator_index", "epoch"], how="anti")
            named = {
                (gap["validator_index"], epoch)
                for gap in made.gaps
                for epoch in range(gap["first_epoch"], gap["last_epoch"] + 1)
            }
            assert set(missing_rows.select("validator_index", "epoch").iter_rows()) == named
            assert made.complete == missing_rows.is_empty()
            assert truth.join(there, on=truth.columns, how="semi").height == there.height
        made = bf.export(bf.load_balance_history, tmp_path / "out", explorer=well, **wanted)
        there = Dataset.open(tmp_path / "out").scan("balance_history").collect()
        assert truth.equals(there.sort("validator_index", "epoch"))
        assert made.complete


def test_future_duties_are_not_gaps(tmp_path, running):
    """They are the requested rows, although their slots are not final."""
    body = {
        "data": [{"slot": 10**6, "duty": "proposal"}, {"slot": 10**6 + 1, "duty": "attestation"}],
        "range": {"slot": {"start": 10**6, "end": 10**6 + 63}},
        "paging": {"next_cursor": ""},
    }
    fault = f"body?path=/upcoming-duty-slots&hex={json.dumps(body).encode().hex()}"
    known = {"chain": running.service.chain, "head": running.service.head}
    with (
        FaultServer(fault) as server,
        bf.Explorer(server.url, **known) as client,
    ):
        made = bf.export(
            bf.v2.load_upcoming_duty_slots, tmp_path / "out", validators=[1], explorer=client
        )
    assert (made.complete, made.rows) == (True, 2)
    found = pl.read_parquet(tmp_path / "out/v2_upcoming_duty_slots/00000.parquet")
    assert [10**6, 10**6 + 1] == found["slot"].to_list()
    assert ["proposal", "attestation"] == found["duty"].to_list()


def test_overlapping_pages_are_deduplicated(tmp_path, running, caplog):
    """Rows that a page repeats are exported once, and no row is missing."""
    known = {"chain": running.service.chain, "head": running.service.head, "rate": 10_000}
    wanted = {"validators": ACTIVE[:24], "since": 399, "until": 400}
    with bf.Explorer(running.url, **known) as well:
        truth = bf.v2.load_balances(explorer=well, **wanted)
    caplog.set_level("INFO", "beaconframes.fetch")
    with FaultServer("page_overlap?path=/validators/balances", upstream=running.url) as server:
        with bf.Explorer(server.url, **known) as damaged:
            made = bf.export(bf.v2.load_balances, tmp_path / "out", explorer=damaged, **wanted)
        pages = [seen for seen in server.seen if "/validators/balances" in seen.target]
    assert 6 == len(pages)
    assert any("12 rows were received more than once" in message for message in caplog.messages)
    assert (made.complete, made.rows) == (True, 48)
    there = Dataset.open(tmp_path / "out").scan("v2_balances").collect()
    assert truth.equals(there.sort("validator_index", "epoch"))


@pytest.mark.parametrize("seeds", [8, pytest.param(200, marks=pytest.mark.long)])
def test_flipped_bit_in_a_response_hides_no_row(tmp_path, running, seeds):
    """A wrong digit cannot be detected, but every row is exported, listed or refused."""
    wanted = {"validators": ACTIVE[:20], "since": 340, "until": 400}
    key = ["validator_index", "epoch"]
    with bf.Explorer(running.url, chain=running.service.chain, head=running.service.head) as well:
        truth = bf.load_balance_history(ACTIVE[:20], since=340, until=400, explorer=well)
    for seed in range(seeds):
        out = tmp_path / str(seed)
        fault = f"bitflip?path=/balance&times=1&seed={seed}"
        made = export_with_fault(running.url, running, fault, out, wanted)
        there = Dataset.open(out).scan("balance_history").collect()
        missing_rows = truth.join(there, on=key, how="anti").select(key)
        assert set(missing_rows.iter_rows()) == {
            (gap["validator_index"], epoch)
            for gap in made.gaps
            for epoch in range(gap["first_epoch"], gap["last_epoch"] + 1)
        }, seed
        assert there.join(truth, on=key, how="anti").is_empty(), seed
        assert not there.select(key).is_duplicated().any(), seed


@pytest.mark.parametrize("flips", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_flipped_byte_in_a_file_is_found(tmp_path, explorer, flips):
    """K11: in any file, before anything is added to it and when it is read.

    A space of the manifest that becomes a tab is no damage.
    """
    out = tmp_path / "out"
    export(out, until=250)
    every = sorted(path for path in (out / "income_history").rglob("*.parquet"))
    assert len(every) > 1
    dice = random.Random(3)
    for _ in range(flips):
        path = dice.choice([*every, out / "manifest.json"])
        data_before = path.read_bytes()
        place = dice.randrange(len(data_before))
        flipped = bytes([data_before[place] ^ dice.randrange(1, 256)])
        damaged = data_before[:place] + flipped + data_before[place + 1 :]
        if path.suffix == ".json" and {flipped, data_before[place : place + 1]} <= JSON_SPACES:
            continue
        path.write_bytes(damaged)
        try:
            found = len(Dataset.open(out).verify())
        except DatasetError:
            found = 1
        assert found == 1
        with pytest.raises(DatasetError):
            export(out, until=300)
        assert damaged == path.read_bytes()
        path.write_bytes(data_before)
    assert export(out, until=250).complete


@pytest.mark.parametrize(
    "when", [1, *(pytest.param(n, marks=pytest.mark.more) for n in range(2, 9))]
)
def test_file_is_rewritten_after_a_failed_sync(tmp_path, explorer, monkeypatch, when):
    """K07: after a failed fsync the content of the disk is unknown."""
    export(tmp_path / "whole", until=250)
    real, calls, synced = os.fsync, [0], set()

    def fsync(handle):
        calls[0] += 1
        if calls[0] == when:
            raise OSError(errno.EIO, "Input/output error")
        real(handle)
        synced.add(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DatasetError, match="Input/output error"):
        export(tmp_path / "out", until=250)
    assert export(tmp_path / "out", until=250).complete
    assert files(tmp_path / "whole") == files(tmp_path / "out")
    there = [path for path in (tmp_path / "out").rglob("*") if path.name != "history.jsonl"]
    assert [] == [path for path in there if path.stat().st_ino not in synced]
