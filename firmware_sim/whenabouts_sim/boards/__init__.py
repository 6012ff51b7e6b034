"""Simulated boards: the official MicroPython, compiled for JavaScript engines, as a board with a console on a terminal.

`NodeBoard` starts one. `board.mjs` is its process: an event loop that owns sockets and ports, and one thread for each life
of the VM (`vm.mjs`), from a reset to the next. `shims/` are the modules that boards have in their ROM and this build lacks;
they ask `vm.mjs`, which asks `board.mjs`. Memory is collected between calls of the VM alone, so `vm.mjs` asks the iterator
`program` that main.py leaves for one step after the other. Integers beyond 31 bits take memory, as on boards; floats are
wider than there.
"""
