"""The cost of a function as a count, which is the same on any machine: no test measures time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def count_calls(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, int]:
    """Return the result of *function*, and how many functions it called in this thread.

    Functions written in C count as well; what they do inside does not.
    """
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = function(*arguments, **options)
    finally:
        sys.setprofile(before)
    return result, count
