"""Colours of charts by name; the same kind of data has the same colour in all charts.

Ten colours that colour-blind readers can distinguish (Petroff 2021, https://arxiv.org/abs/2107.02270).
Both styles, ``plot/beaconframes.mplstyle`` and ``interactive/style.py``, have them in this order.
"""

BLUE = "#3f90da"
AMBER = "#ffa90e"
RED = "#bd1f01"
GREY = "#94a4a2"
PURPLE = "#832db6"
BROWN = "#a96b59"
ORANGE = "#e76300"
KHAKI = "#b9ac70"
SLATE = "#717581"
CYAN = "#92dadd"

CYCLE = (BLUE, AMBER, RED, GREY, PURPLE, BROWN, ORANGE, KHAKI, SLATE, CYAN)

INK = "#1f2937"
RULE = "#6b7280"
GRID = "#e5e7eb"
PAPER = "#ffffff"

SHARES = "cividis"
"""Colour scale of shares: perceptually uniform, and available in both libraries."""
