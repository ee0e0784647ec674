"""Links that need the public addresses of the project: `[project.urls]`, once it has any.

The site of the branch main is at the address `Documentation`, with a folder for each release.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT = "main"
"""The version of the site that no release has."""
VERSIONS = "versions.json"


def read_urls() -> dict[str, str]:
    """Return the addresses of the project, without a slash at their ends."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {name: url.rstrip("/") for name, url in project.get("urls", {}).items()}


def list_tags(*options: str) -> list[str]:
    """Return the tags of releases, the latest first; none outside of a clone."""
    command = ["git", "tag", "--list", "v*", "--sort=-version:refname", *options]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return listed.stdout.split()


def build_switcher(urls: Mapping[str, str]) -> dict[str, str] | None:
    """Return the setting of the theme for the list of versions; a release is named by its tag."""
    if (site := urls.get("Documentation")) is None:
        return None
    version = next(iter(list_tags("--points-at", "HEAD")), DEVELOPMENT)
    return {"json_url": f"{site}/{VERSIONS}", "version_match": version}


def build_versions(urls: Mapping[str, str], tags: Sequence[str]) -> dict[str, str]:
    """Return the file with the versions of the site, which every version of it reads."""
    if (site := urls.get("Documentation")) is None:
        return {}
    rows = [{"version": DEVELOPMENT, "url": f"{site}/"}]
    rows += [{"version": tag, "url": f"{site}/{tag}/"} for tag in tags]
    return {VERSIONS: json.dumps(rows, indent=2)}


def build_launch_links(urls: Mapping[str, str], path: str, tag: str) -> str:
    """Return the links that run a notebook of a release elsewhere, for a repository at GitHub."""
    repository = urlsplit(urls.get("Repository", ""))
    if repository.hostname != "github.com":
        return ""
    name = repository.path.strip("/")
    binder = f"https://mybinder.org/v2/gh/{name}/{tag}?urlpath=lab/tree/{path}"
    colab = f"https://colab.research.google.com/github/{name}/blob/{tag}/{path}"
    return (
        f"Run it on [Binder]({binder}), or on [Colab]({colab}) after `%pip install beaconframes`."
    )
