"""The chain that a node has: each block, state and duty requested once."""
