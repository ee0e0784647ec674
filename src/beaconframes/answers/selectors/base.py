"""How a dataset selects the rows of one type of parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import polars as pl

    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields

    FindNumbers: TypeAlias = Callable[[Any, Fields, View], Collection[int] | None]
    Match: TypeAlias = Callable[[Any, Fields, View], pl.Expr | None]
    Select: TypeAlias = Callable[[Any, pl.LazyFrame, Fields, View], pl.LazyFrame]
    FindSlots: TypeAlias = Callable[[Any, Fields, View], tuple[int, int] | None]
    Order: TypeAlias = Callable[[Any, pl.LazyFrame, Fields], pl.LazyFrame]


@dataclass(frozen=True)
class RowSelector:
    """Functions that select the rows of a parameter, which is their first argument.

    They raise RequestRefused for invalid fields. Without any, a parameter selects all rows.
    """

    find_numbers: FindNumbers | None = None
    """Finds the numbers of the rows in the parameter's column; None if `match` states the rows.

    One query finds the rows of several requests by their numbers.
    """
    match: Match | None = None
    """Returns the condition for rows that numbers do not state; None for all rows."""
    select: Select | None = None
    """Returns the selected rows, where a condition does not state them."""
    sort: Order | None = None
    """Returns rows in the order of an answer, if that is not the order of the table."""
    choose: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    """Returns those rows that a request for their number selects, in the order of an answer."""
    find_slots: FindSlots | None = None
    """Finds the first and the last slot of the rows."""
    select_sums: Select | None = None
    """Returns the selected sums of rows, in their order: shares are computed from all rows."""

    @property
    def has_positions(self) -> bool:
        """Return whether the numbers of rows state their order, too."""
        return self.find_numbers is not None and self.sort is None
