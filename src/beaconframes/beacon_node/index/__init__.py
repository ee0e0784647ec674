"""The dataset of a node's chain: written epoch by epoch, extended, and reported."""
