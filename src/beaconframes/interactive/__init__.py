"""The charts of ``beaconframes.plot`` in plotly: a frame in (polars, pandas, ...), the Figure out.

Names and arguments are the same: *title*, *caption*, and *figsize* in inches of 100 pixels, by
default the width of the page. Every figure has its own style, shows nothing and saves nothing; no
figure has a button that uploads its data. ``interactive.style()`` gives your own figures the same
style.

``template="plotly_dark"``, or a dark default template of plotly, makes the chart dark. The HTML of
``Figure.write_html`` and ``to_html`` has the text of ``interactive.alt_text(figure)`` as its
``aria-label``.
"""

from typing import TYPE_CHECKING

from beaconframes.interactive.alt_text import alt_text
from beaconframes.interactive.attestations import attestations
from beaconframes.interactive.balances import balances
from beaconframes.interactive.coverage import coverage
from beaconframes.interactive.deposits import deposits
from beaconframes.interactive.gas_fees import gas_fees
from beaconframes.interactive.income import income
from beaconframes.interactive.index_coverage import index_coverage
from beaconframes.interactive.leaderboard import leaderboard
from beaconframes.interactive.luck import luck
from beaconframes.interactive.proposals import proposals
from beaconframes.interactive.style import style
from beaconframes.interactive.sync_members import sync_members
from beaconframes.interactive.sync_participation import sync_participation
from beaconframes.interactive.wall import wall
from beaconframes.interactive.withdrawals import withdrawals
from beaconframes.interactive.yield_index import yield_index
from beaconframes.misspelled_names import missing_name

__all__ = [
    "alt_text",
    "attestations",
    "balances",
    "coverage",
    "deposits",
    "gas_fees",
    "income",
    "index_coverage",
    "leaderboard",
    "luck",
    "proposals",
    "style",
    "sync_members",
    "sync_participation",
    "wall",
    "withdrawals",
    "yield_index",
]


if not TYPE_CHECKING:  # Type checkers would accept every name.

    def __getattr__(name: str) -> object:
        """Raise an AttributeError that suggests a public name."""
        raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
