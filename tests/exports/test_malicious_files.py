"""Malicious datasets: an error, in little time and memory."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import typing
from datetime import UTC, datetime

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset, published
from beaconframes.dataset.parquet_footer import find_invalid_claim
from beaconframes.dataset.published import checksum
from beaconframes.errors import BeaconframesError, DatasetError
from beaconframes.exports import work_folder
from beaconframes.exports.formats import FORMATS

from ..support.peak_memory import READ_PEAK, needs_peak, read_peak, reset_peak
from ..support.thrift import join_file, read_struct, split_file, write_struct

ROWS = 1000
HUGE = 10**9
LARGEST = 2**31 - 1
FILE = "rows/00000.parquet"
GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
LITTLE = 64 * 2**20


def rows():
    return pl.DataFrame({"epoch": range(ROWS), "graffiti": ["x" * 10] * ROWS})


def bomb():
    """Two gigabytes of zeros, which zstd compresses to 65,555 bytes."""
    packed = pa.CompressedOutputStream(sink := pa.BufferOutputStream(), "zstd")
    for _ in range(2**31 // 2**24 - 1):
        packed.write(b"\0" * 2**24)
    packed.write(b"\0" * (2**24 - 1))
    packed.close()
    return sink.getvalue().to_pybytes()


def columns(footer):
    """The metadata of each column of the one row group."""
    ((_, groups),) = [footer[4][1]]
    return groups[0], [column[3][1] for column in groups[0][1][1][1]]


def claims_everywhere(data):
    pages, footer = split_file(data)
    group, facts = columns(footer)
    footer[3][1] = group[3][1] = HUGE
    for column in facts:
        column[5][1] = HUGE
    return join_file(pages, footer)


def claims_in_all(data):
    pages, footer = split_file(data)
    footer[3][1] = HUGE
    return join_file(pages, footer)


def claims_in_a_group(data):
    pages, footer = split_file(data)
    columns(footer)[0][3][1] = HUGE
    return join_file(pages, footer)


def page(data, *, unpacked=None, values=None, content=None):
    """Replace the page of the second column by one with a false claim."""
    pages, footer = split_file(data)
    facts = columns(footer)[1][1]
    facts.pop(11, None)  # no dictionary
    header, begins = read_struct(pages, facts[9][1])
    content = content or pages[begins : begins + header[3][1]]
    header[3][1] = len(content)
    if unpacked is not None:
        header[2][1] = unpacked
    if values is not None:
        header[5][1][1][1] = values
    new = write_struct(header) + content
    facts[9][1], facts[7][1] = len(pages), len(new)
    return join_file(pages + new, footer)


def outside(data):
    pages, footer = split_file(data)
    columns(footer)[1][1][9][1] = 2**40
    return join_file(pages, footer)


def in_another_file(data):
    pages, footer = split_file(data)
    columns(footer)[0][1][1][1][0] = {1: [8, b"/etc/passwd"], **columns(footer)[0][1][1][1][0]}
    return join_file(pages, footer)


def deep(data):
    pages, _ = split_file(data)
    footer = b"\x1c" * 100_000
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


HOSTILE = {
    "claims 10^9 rows": (claims_everywhere, "claims 1,000,000,000 rows instead of 1,000"),
    "claims them once": (claims_in_all, "claims 1,000,000,000 rows"),
    "claims them in a group": (claims_in_a_group, "rows instead of 1,000"),
    "claims a huge page": (lambda data: page(data, unpacked=LARGEST), "a page of 2,147,483,647"),
    "claims many values": (
        lambda data: page(data, values=LARGEST),
        "pages claim 2,147,483,647",
    ),
    "claims a page before none": (lambda data: page(data, unpacked=-1), "claims a page of -1"),
    "is a bomb": (lambda data: page(data, unpacked=LARGEST, content=bomb()), "claims a page of"),
    "leads out of itself": (outside, "outside of its data"),
    "leads to another file": (in_another_file, "in another file"),
    "is nested": (deep, "nested too deeply"),
    "has no end": (lambda data: data[:-200], "readable Parquet file"),
    "has a long footer": (
        lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
        "readable Parquet file",
    ),
    "is empty": (lambda _: b"", "readable Parquet file"),
    "is something else": (lambda _: b"PAR1" + b"\0" * 100 + b"PAR1", "readable Parquet file"),
}


def exported(folder):
    bf.export(rows(), folder)
    return folder


def forged(folder, data, **facts):
    """Put *data* into the dataset, and list it in the manifest."""
    (folder / FILE).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    (file,) = manifest["tables"]["rows"]["files"]
    file |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **facts}
    rewritten(folder, manifest)


def rewritten(folder, manifest):
    manifest["checksum"] = checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def ways(folder, copy):
    """All ways to use a dataset from another author."""
    return (
        lambda: Dataset.open(folder).scan("rows").collect(),
        lambda: [Dataset.open(folder).read(s).collect() for s in Dataset.open(folder).segments()],
        lambda: bf.local(folder),
        lambda: bf.export(Dataset.open(folder), copy),
        lambda: bf.export(rows(), folder),
    )


@pytest.mark.parametrize("kind", HOSTILE)
def test_false_claims_of_a_file_are_refused(tmp_path, kind):
    """K17: opening, serving, copying and extending quickly report which claim is false."""
    folder = exported(tmp_path / "out")
    forge, words = HOSTILE[kind]
    forged(folder, forge((folder / FILE).read_bytes()))
    reset_peak()
    before = read_peak()
    started = time.process_time()
    for way in ways(folder, tmp_path / "copy"):
        with pytest.raises(DatasetError, match=words):
            way()
    assert time.process_time() - started < 30
    assert read_peak() - before < LITTLE // 2**20


def test_false_row_count_in_the_manifest_is_refused(tmp_path):
    """The row count 10^9 in both footer and manifest is refused."""
    folder = exported(tmp_path / "out")
    forged(folder, claims_everywhere((folder / FILE).read_bytes()), rows=HUGE)
    for way in ways(folder, tmp_path / "copy"):
        with pytest.raises(DatasetError, match="1,000,000,000 rows in one row group"):
            way()


def test_parquet_file_with_another_ending_is_refused(tmp_path):
    """The ending decides whether the claims of a file are checked."""
    folder = exported(tmp_path / "out")
    data = page((folder / FILE).read_bytes(), unpacked=LARGEST, content=bomb())
    (folder / "rows/00000.pq").write_bytes(data)
    forged(folder, data, path="rows/00000.pq")
    for way in ways(folder, tmp_path / "copy"):
        with pytest.raises(DatasetError, match=r"lists rows/00000\.pq, which is no parquet file"):
            way()


def test_other_schema_is_refused(tmp_path):
    """K17: columns are those of the manifest; a table of a loader has the loader's columns."""
    folder = exported(tmp_path / "out")
    other = rows().with_columns(pl.col("epoch").cast(pl.String))
    other.write_parquet(tmp_path / "other.parquet")
    forged(folder, (tmp_path / "other.parquet").read_bytes())
    with pytest.raises(DatasetError, match="has String where epoch is Int64"):
        Dataset.open(folder).scan("rows")
    bf.export(pl.DataFrame({"validator_index": ["x"]}), tmp_path / "other", table="validators")
    with pytest.raises(DatasetError, match=r"table validators of .* cannot be served: validator"):
        bf.local(tmp_path / "other")


class Extension(pa.ExtensionType):
    """A type whose description is a program for an old pyarrow."""

    def __init__(self):
        super().__init__(pa.int64(), "arrow.py_extension_type")

    def __arrow_ext_serialize__(self):
        return PICKLE

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage, _serialized):
        return cls()


PICKLE = b'cbuiltins\nexec\n(S\'open("/tmp/beaconframes-was-here", "w")\'\ntR.'


def test_extension_type_runs_no_code(tmp_path):
    """K17: it is an error, or an ordinary column, and never a program."""
    folder = exported(tmp_path / "out")
    marker = tmp_path / "was-here"
    numbers = pa.array(range(ROWS), pa.int64())
    column = pa.ExtensionArray.from_storage(Extension(), numbers)
    path = tmp_path / "extension.parquet"
    pq.write_table(pa.table({"epoch": column, "graffiti": ["x"] * ROWS}), path)
    data = path.read_bytes().replace(b"/tmp/beaconframes-was-here", str(marker).encode()[:26])
    forged(folder, data)
    for way in ways(folder, tmp_path / "copy"):
        with pytest.raises(DatasetError):
            way()
    assert not marker.exists()


def test_files_outside_the_dataset_are_not_read(tmp_path):
    """K18: a manifest with outside paths, and links to the outside, are refused."""
    secret = tmp_path / "secret.parquet"
    rows().write_parquet(secret)
    names = (
        "../../etc/passwd", "/etc/passwd", "https://evil.example/x.parquet", "s3://evil/x",
        "rows/../../secret.parquet", "rows//x", "rows/.hidden", "rows\\..\\x", "rows/x\0.parquet",
        "other/00000.parquet", "rows", "", "file:///etc/passwd", "rows/*.parquet", 7, None,
    )  # fmt: skip
    for number, name in enumerate(names):
        folder = exported(tmp_path / f"out-{number}")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["tables"]["rows"]["files"][0]["path"] = name
        rewritten(folder, manifest)
        for way in ways(folder, tmp_path / "copy"):
            with pytest.raises(DatasetError, match=r"outside of its dataset|is damaged"):
                way()
    folder = exported(tmp_path / "file-link")
    (folder / FILE).unlink()
    (folder / FILE).symlink_to(secret)
    other = exported(tmp_path / "folder-link")
    shutil.move(other / "rows", tmp_path / "away")
    (other / "rows").symlink_to(tmp_path / "away")
    for place, words in ((folder, "not a regular file"), (other, "behind a symbolic link")):
        for way in ways(place, tmp_path / "copy"):
            with pytest.raises(DatasetError, match=words):
                way()


@pytest.mark.more
def test_many_missing_files_are_refused_quickly(tmp_path):
    """A manifest may list many files that are missing, or the same file many times."""
    folder = exported(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    (file,) = manifest["tables"]["rows"]["files"]
    many = [{**file, "path": f"rows/{n:05d}.parquet"} for n in range(20_000)]
    for files, words in ((many, "00001.parquet is missing"), ([file] * 20_000, "twice")):
        manifest["tables"]["rows"]["files"] = files
        rewritten(folder, manifest)
        started = time.process_time()
        for way in (ways(folder, tmp_path / "copy")[i] for i in (0, 2, 4)):
            with pytest.raises(DatasetError, match=words):
                way()
        assert time.process_time() - started < 12


def table_of(manifest):
    return next(iter(manifest["tables"].values()))


FORGERIES = {
    "texts as slots": lambda t: (
        table_of(t).update(ranges={"slot": ["a", "b"]}),
        t["provenance"].update(finalized_epoch=None),
    ),
    "texts everywhere": lambda t: [
        manifest.update(ranges={"epoch": ["a", "b"]})
        for manifest in (table_of(t), *table_of(t)["files"])
    ],
    "a text and a number": lambda t: table_of(t)["ranges"].update(epoch=["a", 2]),
    "a text in one file": lambda t: table_of(t)["files"][0]["ranges"].update(epoch=["a", "b"]),
    "no such format": lambda t: table_of(t).update(format="zip"),
    "no such epoch": lambda t: t["provenance"].update(finalized_epoch=2**61),
    "no until": lambda t: table_of(t)["request"].pop("until"),
    "until is text": lambda t: table_of(t)["request"].update(until="2h"),
    "until is a truth": lambda t: table_of(t)["request"].update(until=True),
    "since is a list": lambda t: table_of(t)["request"].update(since=[1]),
    "a gap of an unknown validator": lambda t: table_of(t).update(gaps=[{"validator_index": "x"}]),
    "a gap in no time": lambda t: table_of(t).update(gaps=[{"first_epoch": None}]),
    "a gap in time": lambda t: table_of(t).update(
        gaps=[{"validator_index": 1, "first_epoch": 0, "last_epoch": 2**62}]
    ),
    "another without endpoint": lambda t: t["tables"].update(
        other={k: v for k, v in table_of(t).items() if k != "endpoint"} | {"files": []}
    ),
    "another without title": lambda t: t["tables"].update(
        other={k: v for k, v in table_of(t).items() if k != "title"} | {"files": []}
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_invalid_manifest_is_refused(tmp_path, explorer, kind):
    """Opened, served, exported or extended: a DatasetError, or the rows are right."""
    arguments = {"validators": [1], "since": 0, "until": 5}
    folder = tmp_path / "out"
    bf.export(bf.load_income_history, folder, **arguments)
    manifest = json.loads((folder / "manifest.json").read_text())
    FORGERIES[kind](manifest)
    rewritten(folder, manifest)
    refused = []
    for way in (
        lambda: Dataset.open(folder).meta,
        lambda: bf.local(folder).close(),
        lambda: bf.export(Dataset.open(folder), tmp_path / "copy"),
        lambda: bf.export(bf.load_income_history, folder, **{**arguments, "until": 9}),
    ):
        try:
            way()
        except BeaconframesError as error:
            refused.append(error)
    assert refused or kind in ("texts as slots", "a gap in time")


def test_unknown_format_is_refused_on_opening(tmp_path):
    """The reader of datasets knows every format of the writer."""
    known = typing.get_type_hints(published.ManifestTable)["format"]
    readable = {name for name, form in FORMATS.items() if form.read is not None}
    assert readable == set(typing.get_args(known))
    folder = exported(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    table_of(manifest)["format"] = "zip"
    rewritten(folder, manifest)
    for way in (Dataset.open, bf.local):
        with pytest.raises(DatasetError, match="Invalid enum value 'zip'"):
            way(folder)


@pytest.mark.more
def test_random_manifest_raises_only_own_errors(tmp_path):
    """Random values in a manifest raise no error but those of beaconframes."""
    folder = tmp_path / "out"
    bf.export(pl.DataFrame({"epoch": [0], "time": [GENESIS]}), folder)
    text = (folder / "manifest.json").read_text()
    dice = random.Random(1)
    odd = (None, -1, 2**63, 1.5, "", "x", [], {}, [[]], True, {"a": {}}, "../x", "9" * 50)
    refused = 0
    for number in range(60):
        manifest = json.loads(text)
        corrupt(manifest[dice.choice(("tables", "tables", "provenance"))], dice, odd)
        rewritten(folder, manifest)
        for way in (
            lambda: bf.local(folder).close(),
            ways(folder, tmp_path / f"copy-{number}")[3],
        ):
            try:
                way()
            except BeaconframesError:
                refused += 1
    assert 30 < refused < 120


def corrupt(manifest, dice, odd):
    """Put a wrong value into a random place."""
    at = manifest
    while True:
        key = dice.choice(list(at) if isinstance(at, dict) else range(len(at)))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or dice.random() < 0.2:
            at[key] = dice.choice(odd)
            return
        at = inner


def test_random_footers_raise_no_exception(tmp_path):
    """Randomly changed bytes of a footer are reported or harmless."""
    path = tmp_path / "rows.parquet"
    rows().write_parquet(path)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    dice = random.Random(2)
    found = set()
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 3, 20))):
            damaged[-8 - dice.randrange(1, size + 1)] = dice.randrange(256)
        path.write_bytes(damaged)
        found.add(find_invalid_claim(path, ROWS))
    assert None in found
    assert len(found) > 10


def test_valid_files_are_accepted(tmp_path):
    """Files of this package, pyarrow and pandas pass, with columns of every type."""
    frame = pl.DataFrame(
        {
            "n": [1, None], "wei": ["1", "2"], "at": [GENESIS, None],
            "list": [[1, 2], []], "kind": ["a", "b"], "flag": [True, None], "raw": [b"x", None],
            "deep": [{"a": [1], "b": "x"}, None], "small": [0.5, None],
        },
        schema_overrides={
            "wei": pl.Decimal(28, 0), "at": pl.Datetime("us", "UTC"), "small": pl.Float32,
            "kind": pl.Enum(["a", "b"]), "n": pl.UInt8,
        },
    )  # fmt: skip
    bf.export(frame, tmp_path / "out")
    assert frame.equals(Dataset.open(tmp_path / "out").scan("rows").collect())
    path = tmp_path / "rows.parquet"
    frame.head(0).write_parquet(path)
    assert find_invalid_claim(path, 0) is None
    for options in ({}, {"compression": "zstd"}, {"data_page_version": "2.0"}, {"version": "1.0"}):
        table = rows().to_arrow(compat_level=pl.CompatLevel.oldest())
        pq.write_table(table, path, row_group_size=300, **options)
        assert find_invalid_claim(path, ROWS) is None
    many = pl.select(n=pl.int_range(300_000), text=pl.lit("x"))
    many.write_parquet(path, statistics="full")
    assert find_invalid_claim(path, 300_000) is None


def test_ledger_with_a_view_is_refused(tmp_path):
    """A view in the place of a table could run for ever; our ledgers have none."""
    dataset = Dataset.create(tmp_path / "out", meta={})
    dataset.write("rows", [rows()])
    dataset.check_files()
    with sqlite3.connect(tmp_path / "out/ledger.sqlite") as connection:
        connection.execute("ALTER TABLE segments RENAME TO others")
        connection.execute("CREATE VIEW segments AS SELECT * FROM others")
    connection.close()
    with pytest.raises(DatasetError, match="views or triggers"):
        Dataset.open(tmp_path / "out")


def test_false_claims_in_a_ledger_dataset_are_refused(tmp_path):
    """The files of a store or a simulation are checked, too."""
    dataset = Dataset.create(tmp_path / "out", meta={})
    dataset.write("rows", [rows()])
    (segment,) = dataset.segments()
    path = dataset.path / segment.path
    damaged = claims_in_all(path.read_bytes())
    path.write_bytes(damaged)
    with sqlite3.connect(dataset.path / "ledger.sqlite") as connection:
        facts = (len(damaged), hashlib.sha256(damaged).hexdigest())
        connection.execute("UPDATE segments SET bytes = ?, sha256 = ?", facts)
    connection.close()
    for way in (lambda: bf.local(dataset.path), lambda: bf.export(dataset, tmp_path / "copy")):
        with pytest.raises(DatasetError, match="claims 1,000,000,000 rows"):
            way()


@needs_peak
@pytest.mark.more
def test_bomb_takes_no_memory_on_the_command_line(tmp_path):
    """The command prints one line, sets its status, and uses no more memory than usual."""
    peaks = []
    for kind in ("valid", "bomb"):
        folder = exported(tmp_path / kind)
        if kind == "bomb":
            data = (folder / FILE).read_bytes()
            forged(folder, page(data, unpacked=LARGEST, content=bomb()))
        program = (
            "import sys\nfrom beaconframes.cli import commands\n"
            f"try: commands.main(['export', 'dataset', {str(folder)!r}, '--out',"
            f" {str(tmp_path / kind) + '-again'!r}])\n"
            "except SystemExit as end:\n"
            f"    print(end.code, {READ_PEAK}, file=sys.stderr)"
        )
        completed = subprocess.run(
            [sys.executable, "-c", program], check=False, capture_output=True, text=True
        )
        status, peak = map(int, completed.stderr.splitlines()[-1].split())
        assert (0 if kind == "valid" else 9) == status
        assert (kind == "bomb") == (2 == completed.stderr.count("\n"))
        peaks.append(peak)
    # The page claims 2 GB.
    assert peaks[1] < peaks[0] + 200


PRECIOUS = hashlib.sha256(b"precious").hexdigest()


def create_work_folder(folder):
    """Create the working folder of an apparently killed export."""
    (folder / work_folder.WORK_FOLDER).mkdir()
    return folder / work_folder.WORK_FOLDER


@pytest.mark.parametrize(
    "path",
    [
        "../precious.txt",
        "precious.txt",
        "rows/../precious.txt",
        "rows/mine.txt",
        "rows/00007.parquet",
        "rows/n=link/00007.parquet",
        "/etc/hostname",
        "",
    ],
)
def test_forged_record_removes_no_file(tmp_path, path):
    """A forged record removes no file, inside or outside of the dataset."""
    made = tmp_path / "out"
    bf.export(rows(), made)
    others = [tmp_path / "precious.txt", made / "precious.txt", made / "rows/mine.txt"]
    others += [made / "rows/00007.parquet", tmp_path / "away/00007.parquet"]
    (tmp_path / "away").mkdir()
    (made / "rows/n=link").symlink_to(tmp_path / "away")
    for other in others:
        other.write_text("precious")
    text = json.dumps({path: "0" * 64 if path == "rows/00007.parquet" else PRECIOUS})
    (create_work_folder(made) / work_folder.PUBLISHING).write_text(text)
    bf.export(rows(), made)
    assert ["precious"] * len(others) == [other.read_text() for other in others]


def test_record_with_a_long_path_is_refused(tmp_path):
    """The error names the path that the system refuses."""
    path = f"{'a' * 300}/00000.parquet"
    (create_work_folder(tmp_path) / work_folder.PUBLISHING).write_text(json.dumps({path: PRECIOUS}))
    with pytest.raises(DatasetError, match=r"00000\.parquet cannot be removed: File name too long"):
        bf.export(rows(), tmp_path)


def test_forged_record_replaces_no_document(tmp_path):
    """An existing README stays, even if a record claims it."""
    (tmp_path / "README.md").write_text("precious")
    text = json.dumps({"README.md": "0" * 64})
    (create_work_folder(tmp_path) / work_folder.PUBLISHING).write_text(text)
    with pytest.raises(DatasetError, match="is not a file of this export"):
        bf.export(rows(), tmp_path)
    assert "precious" == (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("name", [work_folder.LOCK, work_folder.HOLDER, work_folder.PUBLISHING])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_link_in_the_work_folder_is_refused(tmp_path, name, kind):
    """A link is not followed and not written to; the error says what to remove."""
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.write_text("")
    out.mkdir()
    place = create_work_folder(out) / name
    place.symlink_to(precious) if kind == "link" else place.mkdir()
    with pytest.raises(DatasetError, match=f"{name} is not a regular file. Remove it"):
        bf.export(rows(), out)
    assert "" == precious.read_text()


def test_text_file_as_lock_is_refused(tmp_path):
    """It is not a database: the error says what to remove."""
    (create_work_folder(tmp_path) / work_folder.LOCK).write_text("not a database" * 1000)
    with pytest.raises(DatasetError, match=r"lock is not the lock file of an export\. Remove it"):
        bf.export(rows(), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "5",
        "[]",
        "{}",
        '{"README.md": 5}',
        '{"README.md": "x"}',
        '{"\xff": "x"}',
        '{"income_history/00000.parquet": {}}',
        '{"income_history/00000.parquet": null, "README.md": "x"}',
    ],
)
def test_invalid_records_are_ignored(tmp_path, explorer, text):
    """Records that no export wrote are ignored, and all rows are exported."""
    record = create_work_folder(tmp_path) / work_folder.PUBLISHING
    record.write_bytes(text.encode("latin-1"))
    made = bf.export(bf.load_income_history, tmp_path, validators=[1, 2], since=0, until=9)
    assert (20, True) == (made.rows, made.complete)
    assert not (tmp_path / work_folder.WORK_FOLDER).exists()
