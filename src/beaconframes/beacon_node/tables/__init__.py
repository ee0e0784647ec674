"""The tables of a node, each with its rows."""
