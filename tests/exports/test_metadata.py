"""The metadata files, checked by the validators of their formats."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import DatasetError

LONG = pytest.mark.long


@pytest.fixture
def exported(tmp_path, explorer):
    """Export a small dataset of a loader in a format."""

    def make(form):
        folder = tmp_path / form
        bf.export(
            bf.load_income_history,
            folder,
            format=form,
            validators=range(5),
            since=0,
            until=199,
            title="Income: of five, <b>and</b> | more",
            creators=["Ada Lovelace", "Émilie du Châtelet"],
            license="CC-BY-4.0",
            url="https://example.org/income",
        )
        return folder

    return make


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # warnings of the validators' own code
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "arrow"])
def test_frictionless_accepts_the_data_package(exported, form, monkeypatch):
    """Frictionless finds every file with the hash and the columns of the package."""
    frictionless = pytest.importorskip("frictionless")
    folder = exported(form)
    monkeypatch.chdir(folder)
    report = frictionless.validate("datapackage.json")
    assert [] == report.flatten(["type", "note"])
    table = next((folder / "income_history").rglob(f"*.{form}"))
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    assert not frictionless.validate("datapackage.json").valid


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_croissant_reads_the_rows(exported, form):
    """The reader of Croissant finds the rows by the metadata alone, with all digits."""
    mlcroissant = pytest.importorskip("mlcroissant")
    folder = exported(form)
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert not dataset.metadata.ctx.issues.warnings
    expected = bf.load_income_history(range(5), since=0, until=199)
    found = list(itertools.islice(dataset.records("income_history"), 2_000))
    keys = [(r["income_history/validator_index"], r["income_history/epoch"]) for r in found]
    assert sorted(expected.select("validator_index", "epoch").iter_rows()) == sorted(keys)
    total = sum(r["income_history/tx_fee_reward_wei"] for r in found)
    assert expected["tx_fee_reward_wei"].sum() == total


def test_a_doi_is_cited(tmp_path):
    """A published address that is a DOI has its own field, which citation tools read."""
    yaml = pytest.importorskip("yaml")
    for url, doi in (("https://doi.org/10.5281/zenodo.1", "10.5281/zenodo.1"), ("https://x.y", 0)):
        bf.export(pl.DataFrame({"n": [1]}), tmp_path / "out", url=url)
        citation = yaml.safe_load((tmp_path / "out" / "CITATION.cff").read_text())
        assert (url, doi) == (citation["url"], citation.get("doi", 0))


def test_citation_is_valid_yaml(exported):
    """CITATION.cff has the fields of the format, and quotes the users' text."""
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((exported("parquet") / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert [{"name": "Ada Lovelace"}, {"name": "Émilie du Châtelet"}] == citation["authors"]
    assert "Income: of five, <b>and</b> | more" == citation["title"]


def test_dictionary_has_every_column(exported):
    """dictionary.csv has the same meanings as bf.describe."""
    dictionary = pl.read_csv(exported("csv") / "dictionary.csv")
    expected = bf.describe("income_history")
    assert expected["column"].to_list() == dictionary["column"].to_list()
    assert expected["meaning"].to_list() == dictionary["meaning"].to_list()


@pytest.mark.more
@pytest.mark.parametrize(
    "form",
    [
        "parquet",
        *(pytest.param(f, marks=LONG) for f in ("csv", "jsonl", "arrow")),
    ],
)
def test_code_in_the_readme_reads_the_rows(exported, form):
    """The README's code reads the dataset in a new process with polars only."""
    folder = exported(form)
    page = (folder / "README.md").read_text()
    snippet = page.partition("```python\n")[2].partition("```")[0]
    end = 'assert "beaconframes" not in sys.modules\nprint(income_history.height)'
    code = f"import sys\n{textwrap.dedent(snippet)}\n{end}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ("1000", "") == (done.stdout.strip(), done.stderr)


def test_the_readme_of_a_frame_does_not_promise_loaders(exported, tmp_path):
    """A dataset of a frame does not state its chain, and a loader cannot read it."""
    bf.export(pl.DataFrame({"epoch": [1], "reward_gwei": [2]}), tmp_path / "frame")

    assert "bf.open(folder)" in (exported("parquet") / "README.md").read_text()
    assert "bf.open" not in (tmp_path / "frame" / "README.md").read_text()
    with pytest.raises(DatasetError, match=r"exports of frames do not.*polars.*export a loader"):
        bf.open(tmp_path / "frame")


def test_readme_warns_of_simulated_data(exported):
    """Simulated data is marked, and the users' text is escaped."""
    page = (exported("csv") / "README.md").read_text()
    assert "**The data is simulated**" in page or "a service on this machine" in page
    assert "&lt;b>and" in page
    assert "apostrophe" in page


def test_json_documents_agree(exported):
    """The documents list the same files."""
    folder = exported("parquet")
    manifest, package, croissant = (
        json.loads((folder / name).read_text())
        for name in ("manifest.json", "datapackage.json", "croissant.json")
    )
    named = [f["path"] for f in manifest["tables"]["income_history"]["files"]]
    assert named == [resource["path"] for resource in package["resources"]]
    objects = [d for d in croissant["distribution"] if d["@type"] == "cr:FileObject"]
    assert named == [found["contentUrl"] for found in objects]


@pytest.mark.parametrize(
    ("dtype", "croissant", "frictionless"),
    [
        (pl.Int8, "sc:Integer", "integer"),
        (pl.UInt32, "sc:Integer", "integer"),
        (pl.Decimal(28, 0), "sc:Integer", "number"),
        (pl.Decimal(38, 2), "sc:Float", "number"),
        (pl.Float64, "sc:Float", "number"),
        (pl.List(pl.UInt32), "sc:Integer", "array"),
    ],
)
def test_numbers_have_the_types_of_numbers(tmp_path, dtype, croissant, frictionless):
    """Integers may be unsigned, and a decimal with digits after the point is no integer."""
    bf.export(pl.DataFrame({"n": []}, schema={"n": dtype}), tmp_path / "out", name="rows")
    documents = [
        json.loads((tmp_path / "out" / name).read_text())
        for name in ("croissant.json", "datapackage.json")
    ]

    assert croissant == documents[0]["recordSet"][0]["field"][0]["dataType"]
    assert frictionless == documents[1]["resources"][0]["schema"]["fields"][0]["type"]


def test_readme_has_types_for_json_lines(tmp_path):
    """A first file of nulls is read, and no column name ends the code block."""
    rows = pl.DataFrame(
        {
            "epoch": [0, 225],
            "time": [datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC) + timedelta(n) for n in (0, 1)],
            '``` a"b': [None, 1],
            "few": [None, [True]],
            "name": [None, "x"],
        }
    )
    bf.export(rows, tmp_path, format="jsonl", name="rows")
    snippet = (tmp_path / "README.md").read_text().split("```")[1].removeprefix("python\n")
    done = subprocess.run(
        [sys.executable, "-c", f"{snippet}\nprint(rows.dtypes, rows.row(1)[2:])"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    expected = "[Int64, String, Int64, List(Boolean), String] (1, [True], 'x')"
    assert (expected, "") == (done.stdout.strip(), done.stderr)
