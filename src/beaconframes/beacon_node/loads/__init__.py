"""A node as the source of loads: what a load needs is added to an index, and answered from it."""
