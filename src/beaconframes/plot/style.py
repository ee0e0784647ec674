"""The style of the charts, as a context manager; importing this changes no settings."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def _read_style() -> mpl.RcParams:
    """Read the style file, once."""
    path = Path(__file__).with_name("beaconframes.mplstyle")
    return mpl.rc_params_from_file(path, use_default_template=False)


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of beaconframes inside the ``with`` block; its end restores settings."""
    # The first use of pyplot loads the backend, and the backend of notebooks sets "interactive"
    # then. Inside of the block, its end would undo that, and cells would show no figures.
    plt.draw_if_interactive()  # type: ignore[no-untyped-call]
    with mpl.rc_context(_read_style()):
        yield
