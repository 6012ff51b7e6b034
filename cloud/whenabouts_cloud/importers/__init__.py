"""Importers of third-party log files: their readings land beside those of gateways."""
