"""What a person sees: a notebook in JupyterLab, driven through a real browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PATIENCE = 120_000
"""Milliseconds: the notebook may have to simulate its chain first."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, in a container, its sandbox cannot be had; it opens only pages of our own.
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def short():
    """A folder for sockets: one of pytest's may have a longer name than these are allowed."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def lab(tmp_path, short, sample_cache):
    """A JupyterLab of its own, with nothing of the user's: the address of a folder of notebooks."""
    folder, settings = tmp_path / "notebooks", tmp_path / "settings"
    shutil.copytree(NOTEBOOKS, folder)
    # Cells out of sight are in the page as well; nobody is asked whether to fetch news.
    for extension, choices in {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }.items():
        file = settings / "@jupyterlab" / f"{extension}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(choices))
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0"),
        *("--IdentityProvider.token=secret", "--allow-root", f"--ServerApp.root_dir={folder}"),
        "--KernelManager.transport=ipc",
    ]
    surroundings = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(sample_cache),
        "JUPYTER_RUNTIME_DIR": str(short),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(
            command, env=os.environ | surroundings, cwd=folder, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while not (found := list(short.glob("jpserver-*.json"))):
            assert running.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        port = json.loads(found[0].read_text())["port"]
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=secret"
    finally:
        running.terminate()
        running.wait(30)


def test_the_first_notebook_runs_in_jupyterlab(browser, lab):
    """All its cells run; it shows tables, charts and the wall, and no error."""
    name = "01_validator_income.ipynb"
    cells = nbformat.read(NOTEBOOKS / name, as_version=4).cells
    count = sum(cell.cell_type == "code" for cell in cells)
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(PATIENCE)

    page.goto(lab.format(name))
    page.locator(".jp-Notebook .jp-CodeCell").nth(count - 1).wait_for(state="attached")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".jp-CodeCell .jp-InputPrompt", has_text=f"[{count}]:").wait_for()

    def shown(what):
        return page.locator(f".jp-OutputArea-output {what}").count()

    assert 0 == page.locator('[data-mime-type="application/vnd.jupyter.error"]').count()
    assert 0 == page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count()
    assert shown("table.dataframe") >= 4
    assert shown("img") >= 7
    page.close()
