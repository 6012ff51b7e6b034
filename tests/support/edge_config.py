"""Configurations of a gateway, as small as they can be."""

FINE = """\
site = "warehouse"
gateway = "dock-1"
[[reader]]
name = "dock"
kind = "m6e"
port = "/dev/ttyUSB0"
"""
GROUP_LINES = """\
[group]
name = "office"
members = ["dock-1", "door-1", "shop/till-1"]
[[state]]
name = "loaded"
stream = "dock/tags"
"""
