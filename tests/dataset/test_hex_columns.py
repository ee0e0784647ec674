"""Hex columns: stored as numbers, and read as the texts that the seed and the numbers give."""

from hashlib import blake2b

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.dataset.hex_columns import HexColumn

META = {"_hex_columns": {"seed": 7, "tables": {"blocks": {"root": ["root", 32]}}}}


WORD = 2**64


def split_mix(start, position):
    """Word number *position* of SplitMix64: https://prng.di.unimi.it/splitmix64.c."""
    word = (start + position * 0x9E3779B97F4A7C15) % WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


@pytest.fixture
def dataset(tmp_path):
    created = Dataset.create(tmp_path / "data", meta=META)
    rows = pl.DataFrame({"slot": [4, 5, 6, 7], "root": [8, None, 8, -1]})
    created.write("blocks", [rows])
    created.write("epochs", [rows])
    return created


class TestDraw:
    def test_a_number_gives_the_same_text_on_every_machine(self):
        """The words are those of SplitMix64, started at a hash of label and seed."""
        numbers = pl.Series("root", [0, 2**62, -1])
        key = int.from_bytes(blake2b(b"root 1", digest_size=8).digest(), "little")
        drawn = HexColumn(1, "root", 16).draw(numbers).to_list()
        for number, text in zip(numbers, drawn, strict=True):
            words = [split_mix(key, 2 * number + place) for place in (1, 2)]
            assert text == "0x" + b"".join(word.to_bytes(8, "little") for word in words).hex()

    def test_label_seed_and_number_make_a_text(self):
        numbers = pl.Series(range(1000))
        columns = (HexColumn(1, "root", 32), HexColumn(1, "hash", 32), HexColumn(2, "root", 32))
        texts = pl.concat([column.draw(numbers) for column in columns])
        assert texts.n_unique() == 3000

    def test_texts_have_the_size_and_all_digits(self):
        texts = HexColumn(1, "signature", 96).draw(pl.Series(range(200)))
        assert texts.str.contains("^0x[0-9a-f]{192}$").all()
        counts = texts.str.tail(192).str.split("").explode().value_counts()["count"]
        assert len(counts) == 16
        assert counts.is_between(2200, 2600).all()  # 2400 each, with a deviation of 47

    def test_no_number_gives_no_text(self):
        texts = HexColumn(1, "root", 32).draw(pl.Series([None, 3, None, 3], dtype=pl.Int64))
        assert texts.is_null().to_list() == [True, False, True, False]
        assert texts[1] == texts[3]
        assert HexColumn(1, "root", 32).draw(pl.Series([], dtype=pl.Int64)).dtype == pl.String


class TestReaders:
    def test_scan_read_and_schema_show_texts(self, dataset):
        first, missing, third, before = dataset.scan("blocks").collect()["root"]
        assert first == third
        assert missing is None
        assert len({first, before}) == 2
        (segment,) = dataset.segments("blocks")
        assert dataset.read(segment).collect().equals(dataset.scan("blocks").collect())
        assert dataset.schema("blocks") == {"slot": pl.Int64, "root": pl.String}
        assert dataset.scan("blocks").collect_schema() == dataset.schema("blocks")

    def test_rows_are_found_by_their_text(self, dataset):
        text = dataset.scan("blocks").collect()["root"][0]
        found = Dataset.open(dataset.path).scan("blocks").filter(root=text).select("slot")
        assert found.collect()["slot"].to_list() == [4, 6]

    def test_a_column_that_is_not_read_is_not_drawn(self, dataset, monkeypatch):
        monkeypatch.setattr(HexColumn, "draw", None)
        rows = Dataset.open(dataset.path).scan("blocks").filter(pl.col("slot") > 5)
        assert rows.select("slot").collect().height == 2

    def test_other_tables_and_datasets_are_read_as_they_are(self, dataset, tmp_path):
        """A dataset that an earlier version simulated has texts in its files."""
        assert dataset.scan("epochs").collect()["root"].dtype == pl.Int64
        earlier = Dataset.create(tmp_path / "earlier", meta={"simulated": True, "seed": 1})
        rows = pl.DataFrame({"slot": [1], "root": ["0x12"]})
        earlier.write("blocks", [rows])
        assert earlier.scan("blocks").collect().equals(rows)

    def test_a_copy_with_the_same_metadata_has_texts(self, dataset, tmp_path):
        """The columns are metadata of the files, not of the data."""
        assert dataset.meta == {"format_version": dataset.meta["format_version"]}
        rows = dataset.scan("blocks").collect()
        copy = Dataset.create(tmp_path / "copy", meta={})
        copy.write("blocks", [rows])
        assert copy.scan("blocks").collect().equals(rows)

    def test_an_export_has_the_texts(self, dataset, tmp_path):
        bf.export(dataset, tmp_path / "export", table="blocks")
        exported = Dataset.open(tmp_path / "export").scan("blocks").collect()
        assert exported["root"].to_list() == dataset.scan("blocks").collect()["root"].to_list()


class TestSimulation:
    def test_random_texts_take_no_space(self, chain):
        """Hashes and signatures of a block have 1,500 digits; all of a block's row takes less."""
        size = chain.tables()["blocks"]
        assert size.bytes < 100 * size.rows
