"""The configuration of a gateway: its tables with their defaults, the reading of the file, and other packages' readers."""
