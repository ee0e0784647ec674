"""What a notebook shows for objects whose tables cannot be read."""

from __future__ import annotations

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.client.store import Store

formatters = pytest.importorskip("IPython.core.formatters")


@pytest.fixture
def show():
    """Return the formats that a notebook shows for an object."""
    formatter = formatters.DisplayFormatter()
    return lambda value: formatter.format(value)[0]


def test_a_damaged_store_is_shown_as_text(show, tmp_path):
    """X09: the text has the reason, and the cell has no error."""
    (tmp_path / "ledger.sqlite").write_bytes(b"not a database")

    shown = show(Store(tmp_path))

    assert ["text/plain"] == list(shown)
    assert "is damaged" in shown["text/plain"]


def test_a_frame_whose_html_fails_is_shown_as_text(show, monkeypatch, capsys):
    """X09: an exception of `_repr_html_` leaves the text of the frame."""

    def fail(self):
        raise RuntimeError

    monkeypatch.setattr(pl.DataFrame, "_repr_html_", fail)

    for value in (bf.to_eth(pl.DataFrame({"x_gwei": [1]})), Store("absent")):
        shown = show(value)
        assert "text/html" not in shown
        assert shown["text/plain"]
    assert "RuntimeError" in capsys.readouterr().err
