"""Limits of simulated chains: apart from the simulator, so that the command line starts fast."""

MINIMUM = {"validators": 50, "epochs": 8, "history_days": 0, "seed": 0}
MAXIMUM = {"validators": 10_000_000, "epochs": 10_000_000, "history_days": 36_500}
"""Larger chains do not fit into memory or on disks; mainnet has about two million validators."""
