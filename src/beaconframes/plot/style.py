"""The look of the charts, as a context manager; importing this changes nothing."""

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
    """Draw in the style of beaconframes inside the ``with`` block; what was set before returns."""
    # The first use of pyplot loads the backend, and that of notebooks sets "interactive" then: if
    # it did so inside of the block, the end of the block would undo it, and no cell show a figure.
    plt.draw_if_interactive()  # type: ignore[no-untyped-call]
    with mpl.rc_context(_read_style()):
        yield
