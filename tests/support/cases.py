"""Which cases of a test run where."""

from __future__ import annotations

import pytest


def every(step, values):
    """Return the values of a parameter, all but every *step*-th of them marked ``more``."""
    return [
        value if place % step == 0 else pytest.param(value, marks=pytest.mark.more)
        for place, value in enumerate(values)
    ]
