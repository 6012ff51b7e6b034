"""The agent for boards: the cores of a gateway's work in one cooperative step; the same on CPython and MicroPython."""
