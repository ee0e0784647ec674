"""Settings of the documentation site. `make site` collects its sources and runs Sphinx on them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import beaconframes as bf

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "site"))

import addresses  # noqa: E402 - the folder is added above
import api_pages  # noqa: E402
import page_marks  # noqa: E402
import signatures  # noqa: E402

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "beaconframes"
author = copyright = "The beaconframes contributors"  # noqa: A001 - Sphinx reads this name
version = release = bf.__version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "sphinx_design"]

# --- pages in Markdown, and notebooks ------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 4
# Quotes only: a dash instead of the `--` of an option would be wrong.
smartquotes_action = "q"
# Notebooks are stored with their outputs.
nb_execution_mode = "off"
nb_merge_streams = True
# No page loads anything from the network.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# --- docstrings ----------------------------------------------------------------------------------

# Words in single backticks are public names.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(polars|pandas|narwhals|matplotlib|plotly|PIL)\..*"),
    # The types in signatures; docstrings refer to objects.
    (r"py:class", r".*"),
]
# `show_types` writes the types of a signature, once for all overloads.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
toc_object_entries = False
maximum_signature_line_length = 88

# --- HTML ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "beaconframes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("figures.js", {"defer": "defer"})]
html_favicon = "_static/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
templates_path = ["_templates"]
html_theme_options: dict[str, Any] = {
    "logo": {"image_light": "_static/icon.svg", "image_dark": "_static/icon.svg", "text": project},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if switcher := addresses.build_switcher(addresses.read_urls()):
    html_theme_options |= {"switcher": switcher, "check_switcher": False}
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher"]
html_context = {"default_mode": "auto"}
# Pages that are no part of a section have no navigation beside them.
GUIDE_SIDEBAR = ["sidebar-collapse", "sidebar-nav-bs"]
html_sidebars = {"*": [], "own-node": GUIDE_SIDEBAR, "own-node-index": GUIDE_SIDEBAR}


def resolve_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link a public name that a docstring of another module mentions without its module."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    target = node["reftarget"].removeprefix("bf.").removeprefix("beaconframes.")
    for name in api_pages.find_spellings(target):
        if name in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return None


def show_types(_app: Sphinx, _what: str, _name: str, obj: Any, *shown: Any) -> Any:
    """Return the signature of a function or class with its types."""
    _options, arguments, _result = shown
    return None if arguments is None else signatures.build_signature(obj)


def setup(app: Sphinx) -> None:
    """Register the links of docstrings, the types of signatures, and the marks of pages."""
    app.connect("missing-reference", resolve_name)
    app.connect("autodoc-process-signature", show_types)
    app.connect("doctree-read", page_marks.mark_page)
