"""Draw without a display, and close the figures of each test."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures of the test."""
    yield
    mpl.pyplot.close("all")
