"""The configuration of a gateway: its tables with their defaults, the parser of the file, and readers of other
packages.
"""
