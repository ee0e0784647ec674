"""The colours of the style by name: what is drawn keeps its colour from chart to chart.

Ten colours that stay apart for colour-blind readers (Petroff 2021, https://arxiv.org/abs/2107.02270),
the same as in ``beaconframes.mplstyle``.
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
