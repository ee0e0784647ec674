"""What a notebook shows for objects whose tables cannot be read."""

from __future__ import annotations

import atexit
import re
import sys
from types import ModuleType

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


@pytest.fixture
def run_cell(monkeypatch, tmp_path, capsys):
    """Run code as a cell of a notebook, and return what it prints, without colours."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    shells = pytest.importorskip("IPython.core.interactiveshell")
    from traitlets.config import Config

    config = Config({"HistoryManager": {"enabled": False}})
    # Its own module: that of the shell would replace `__main__`.
    shell = shells.InteractiveShell.instance(config=config, user_module=ModuleType("cell"))

    def run(code: str) -> str:
        capsys.readouterr()
        shell.run_cell(code)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)

    yield run
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    shells.InteractiveShell.clear_instance()


@pytest.mark.more
def test_a_notebook_shows_an_error_with_the_frames_of_the_user_only(run_cell):
    """Step 12, 6: an invalid argument has a few lines, and `%tb Plain` has all frames."""
    run_cell("import beaconframes as bf\ndef connect():\n    bf.Explorer(chain='mainet')")

    shown = run_cell("try:\n    1 / 0\nexcept ZeroDivisionError:\n    connect()")

    assert "----> 4     connect()" in shown
    assert "----> 3     bf.Explorer(chain='mainet')" in shown
    assert "ConfigError: unknown chain 'mainet'" in shown
    assert "client/explorer.py" not in shown
    assert "ZeroDivisionError:" not in shown.replace("except ZeroDivisionError:", "")
    assert len(shown.splitlines()) < 20
    assert shown.rstrip().endswith("%tb Plain")
    full = run_cell("%tb Plain")
    assert "client/explorer.py" in full
    assert "ZeroDivisionError: division by zero" in full


def test_a_notebook_shows_an_error_of_an_async_cell_and_one_of_the_user(run_cell):
    """Step 12, 6: async cells have the same short form; a user's own error has no hint."""
    run_cell("import beaconframes as bf\nasync def look():\n    return bf.describe('nothing')")

    shown = run_cell("await look()")
    own = run_cell("raise bf.BeaconframesError('mine')")

    assert "----> 1 await look()" in shown
    assert "dictionary.py" not in shown
    assert "'nothing' is not a loader, table or column" in shown
    assert "BeaconframesError: mine" in own
    assert "%tb" not in own


@pytest.mark.parametrize(
    ("store", "kept"),
    [
        (False, "no rows are kept, because the store is off"),
        (True, "received final rows are stored"),
    ],
)
def test_a_notebook_shows_what_an_interrupted_load_has_stored(
    run_cell, monkeypatch, tmp_path, store, kept
):
    """Ctrl-C has a few lines, not the frames of threads that wait."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bf.Explorer, "_load", interrupt)

    run_cell("import beaconframes as bf")
    options = f"'http://127.0.0.1:9', chain='mainnet', store={str(tmp_path) if store else False!r}"
    shown = run_cell(f"bf.load_epochs(explorer=bf.Explorer({options}))")

    assert f"KeyboardInterrupt: load interrupted; {kept}" in shown
    assert "client/explorer.py" not in shown
    assert len(shown.splitlines()) < 20


def test_tab_offers_the_names_that_users_need(chain):
    """An explorer has some forty names; those of the package alone are not offered."""
    own = "about chain close offline rate read_quota requests settings store_path url"

    with bf.local(chain) as local, bf.open(chain.path) as opened:
        assert [*own.split(), "wait"] == [name for name in dir(local) if name[0] != "_"]
        assert own.split() == [name for name in dir(opened) if name[0] != "_"]


def test_a_dataset_and_its_local_explorer_are_shown_as_tables(show, chain):
    """Step 12, 6: origin, tables, head and requests; a closed explorer says so."""
    with bf.local(chain, frame="pandas") as local:
        bf.load_validators(3)
        running = show(local)["text/html"]
    closed = show(local)["text/html"]
    dataset = show(chain)["text/html"]

    head = chain.meta["latest_epoch"]
    for shown in (running, closed):
        assert "<caption>Local explorer http://127.0.0.1:" in shown
        assert f"epoch {head:,}" in shown
        assert ">simulated</td>" in shown
    assert ">running<" in running
    assert ">closed<" in closed
    assert ">pandas</td>" in running
    assert 'requests answered</th><td style="text-align:left">1<' in running
    size = chain.tables()["income_history"]
    assert f">{size.rows:,} rows, " in dataset
    assert f">{head:,}</td>" in dataset


def test_an_explorer_is_shown_without_its_key_and_without_a_request(show, monkeypatch):
    """Step 12, 6: a cell that ends with an explorer sends nothing and shows no secret."""
    monkeypatch.setattr(bf.Explorer, "fetch", lambda *_: pytest.fail("a request was sent"))

    explorer = bf.Explorer("https://explorer.example", api_key="s3cret-key")
    shown = show(explorer)

    assert "https://explorer.example" in shown["text/html"]
    assert str(explorer.store_path) in shown["text/html"]
    assert ">on<" in show(bf.Explorer("http://127.0.0.1:9", store=True))["text/html"]
    assert ">off<" in show(bf.Explorer("http://127.0.0.1:9"))["text/html"]
    assert "s3cret" not in str(shown)
    assert explorer.requests == 0


def test_a_chain_and_an_export_are_shown_as_tables(show):
    """Step 12, 6: the clock of mainnet, and what an export wrote and did not."""
    gaps = ({"reason": "not final yet"}, {"reason": "<b>"})
    export = bf.Export("income", {"income_history": 1200}, 34_567, 2, 1, gaps, 83_000, "epoch")

    mainnet, written = show(bf.MAINNET)["text/html"], show(export)["text/html"]

    for fact in ("2020-12-01 12:00:23 UTC", "12 seconds", "32 slots, 0:06:24 hours", "225 epochs"):
        assert fact in mainnet
    for fact in ("1,200 rows", "3, of which 2 are new", "34.6 kB", "epoch 83,000", "&lt;b&gt;"):
        assert fact in written


def test_text_in_the_metadata_of_a_dataset_is_inert(show, tmp_path):
    """The folder may be from anywhere; a damaged one is shown as text."""
    meta = {"service": "<script>x</script>\u202e", "latest_epoch": 5, "simulated": False}
    dataset = bf.Dataset.create(tmp_path / "data", meta=meta)

    shown = show(dataset)["text/html"]
    (tmp_path / "data" / "ledger.sqlite").write_bytes(b"not a database")
    damaged = show(bf.Dataset(tmp_path / "data"))

    assert "&lt;script&gt;" in shown
    assert "\u202e" not in shown
    assert ">of a real chain<" in shown
    assert ["text/plain"] == list(damaged)
