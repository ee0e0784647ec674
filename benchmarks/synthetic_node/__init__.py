"""A synthetic chain, and a beacon node on loopback that serves it."""
