"""The rows of a dataset that a request selects."""

from __future__ import annotations

from beaconframes.answers.selectors import select_list, select_page


def select_answer(endpoint, rows, fields, view):
    """Return the *rows* that a request with *fields* selects, in the order of an answer."""
    return select_page(endpoint, select_list(endpoint, rows, fields, view), fields, view)
