"""The agent for boards: a gateway's work in one cooperative step, the same on CPython and MicroPython.

`agent` joins the cores (`ticks`, `sntp`, `ring`, `mqtt`, `reader`, `store`, `courier`), which hold no port, socket, file or
clock; `run` is their driver, with `flash` and `net`. Nothing is loaded here: memory is short.
"""
