"""A release: what it changes, what it refuses, what it builds, and its page on an index."""

from __future__ import annotations

import hashlib
import importlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from .test_repository import ROOT

CHANGED = ["pyproject.toml", "CITATION.cff", "CHANGELOG.md"]


@pytest.fixture
def tools(monkeypatch):
    """Return a function that imports a script of tools/."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module


@pytest.fixture
def checkout(tmp_path):
    """The files that a release changes, with one change below Unreleased."""
    for name in CHANGED:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- A change.\n")
    return tmp_path


def changed_lines(folder):
    """Return the lines that *folder* has and the repository has not, by file."""
    found = {}
    for name in CHANGED:
        before = (ROOT / name).read_text().splitlines()
        lines = [line for line in (folder / name).read_text().splitlines() if line not in before]
        found[name] = [line.strip() for line in lines]
    return found


def test_a_release_changes_the_version_wherever_it_is_stated(tools, checkout):
    """Project, citation and changelog have version and date."""
    tools("release").cut(checkout, "9.8.7", "2031-02-03")

    assert {
        "pyproject.toml": ['version = "9.8.7"'],
        "CITATION.cff": ["version: 9.8.7", "date-released: 2031-02-03"],
        "CHANGELOG.md": ["## 9.8.7 - 2031-02-03", "- A change."],
    } == changed_lines(checkout)
    changes = (checkout / "CHANGELOG.md").read_text()
    assert "# Changelog\n\n## Unreleased\n\n## 9.8.7 - 2031-02-03\n\n- A change.\n" == changes


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        ("9.8", "- A change.", "'9.8' is not a version"),
        ("0.0.9", "- A change.", r"0\.0\.9 is not later than"),
        ("9.8.7", "", "no changes below Unreleased"),
    ],
)
def test_a_release_refuses_a_wrong_version_and_an_empty_changelog(
    tools, checkout, version, changes, message
):
    """A version has three numbers and is later than the last one; it has changes."""
    text = f"# Changelog\n\n## Unreleased\n\n{changes}\n\n## 0.1.0\n\n- First.\n"
    (checkout / "CHANGELOG.md").write_text(text)

    with pytest.raises(SystemExit, match=message):
        tools("release").cut(checkout, version, "2031-02-03")
    assert text == (checkout / "CHANGELOG.md").read_text()


def test_a_release_refuses_changed_files_and_a_tag_that_exists(tools, tmp_path, monkeypatch):
    """A release has what is committed, and a tag never moves."""
    release = tools("release")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for command in ("init", "-c user.name=a -c user.email=a@test commit --allow-empty -m x"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["git", "tag", "v9.8.7"], cwd=tmp_path, check=True)

    with pytest.raises(SystemExit, match=r"the tag v9\.8\.7 exists"):
        release.release("9.8.7", "uv")
    (tmp_path / "new").touch()
    with pytest.raises(SystemExit, match="the checkout has changes"):
        release.release("9.8.6", "uv")


def test_sections_of_the_changelog_are_short():
    """A version has at most 60 lines for its users; the history has the rest."""
    sections = re.split(r"(?m)^## ", (ROOT / "CHANGELOG.md").read_text())[1:]
    lengths = {text.partition("\n")[0]: text.strip().count("\n") for text in sections}

    assert len(lengths) > 1
    assert {} == {title: length for title, length in lengths.items() if length > 60}


def test_the_index_page_has_no_links_into_a_checkout(tools):
    """With a repository, links and pictures lead to its tag; without one, none is left."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    def build(**urls):
        metadata = {"version": "9.8.7", "urls": urls}
        tools("index_page").IndexPage(str(ROOT), {}).update(metadata)
        return metadata["readme"]["text"]

    page, without = build(Repository="https://example.org/bf/"), build()
    targets = re.findall(r'(?:\]\(|src(?:set)?=")([^")\s]+)', page)

    assert len(targets) > 40
    assert [] == [target for target in targets if not target.startswith("https://")]
    assert "[report](https://example.org/bf/blob/v9.8.7/docs/guide/report.md)" in page
    assert 'src="https://example.org/bf/raw/v9.8.7/docs/pictures/wall-light.png"' in page
    for text in (page, without):
        assert re.findall(r"(?s)```.*?```", text) == re.findall(r"(?s)```.*?```", readme)
    assert "<picture" not in without
    assert "One report answers it" in without
    assert "[beaconcha.in](https://beaconcha.in)" in without


@pytest.mark.more
def test_the_distributions_are_complete(tools, tmp_path):
    """Two builds have equal bytes; checksums, page and sample are in the distributions."""
    wheel, sdist = sorted(tools("release").build(ROOT, tmp_path / "dist"))
    lines = (tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split()) for line in lines)

    assert sums == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (wheel, sdist)}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        page = archive.read(metadata).decode()
    assert {"beaconframes/py.typed", "beaconframes/data/sample/ledger.sqlite"} <= set(names)
    assert "\n# beaconframes\n" in page
    assert [] == re.findall(r"\]\((?![a-z]+:|#)", page)
    # A wheel of the sdist is the wheel.
    subprocess.run(["tar", "-xf", sdist], cwd=tmp_path, check=True)
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    with zipfile.ZipFile(tmp_path / "again" / wheel.name) as archive:
        assert names == archive.namelist()
        assert page == archive.read(metadata).decode()
