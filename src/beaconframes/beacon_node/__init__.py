"""The Beacon API of a consensus node as a source of tables."""
