"""Simulated boards: the official MicroPython, compiled for JavaScript engines, as a board with a console on a terminal.

`NodeBoard` starts one. `board.mjs` is its process: an event loop that owns sockets and ports, and one thread for each life
of the VM (`vm.mjs`), from one reset to the next. `shims/` holds the modules that boards have in their ROM and this build
lacks; they call `vm.mjs`, which sends requests to `board.mjs`. Memory is collected only between calls of the VM, so `vm.mjs`
advances the iterator `program` that main.py leaves one step at a time. Integers beyond 31 bits take memory, as on boards;
floats are wider than on boards.
"""
