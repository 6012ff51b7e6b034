"""A simulated board as a process, its console on a pseudo-terminal that `mpremote` can open."""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import tempfile
import threading
import tty
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from whenabouts_sim.boards.node_vm import node, vm_folder
from whenabouts_sim.stack.parent_death import with_parent

HEAP_KB = 192  # about what a Pico W has left with its Wi-Fi up
SEND_BUFFER_BYTES = 8 * 1460  # lwIP's send buffer for a socket, as boards are built
PATIENCE_S = 0.5
_READ_BYTES = 4096


class NodeBoard:
    """A board with the folder `flash` as its flash, powered on while the context lasts.

        with NodeBoard(folder, uarts={0: reader.path}) as board:
            subprocess.run(["mpremote", "connect", board.port, "cp", "main.py", ":"])

    port: path of its console's terminal; it stays the same when the power is cut.
    uarts: for each UART number the path of a terminal, or "tcp:HOST:PORT".
    heap_kb: memory for Python objects, None for no limit. It is collected when main.py has ended, and then between the
    steps of the generator `program` that main.py may leave; a `while True` in main.py never collects.
    patience_s: how long output waits if nobody reads the console; then it is lost, as a board's on USB is.

    `power_off()` ends the board as pulling the plug does. `power_on(cut_after_bytes)` starts it again and cuts the power
    during the write to flash that exceeds this number of bytes; `wait()` waits for such an end.

    Raises:
        NodeMissing: Node or the VM is not installed.
    """

    def __init__(
        self,
        flash: Path,
        uarts: Mapping[int, Path | str] | None = None,
        heap_kb: int | None = HEAP_KB,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.flash = Path(flash)
        self._options = {
            "vm": str(vm_folder()),
            "flash": str(self.flash.resolve()),
            "heap_kb": heap_kb or 0,
            "uarts": {str(number): str(place) for number, place in (uarts or {}).items()},
            "unique_id": "simulated",
            "send_buffer": SEND_BUFFER_BYTES,
        }
        self._patience_s = patience_s
        self._node = node()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._master = self._slave = -1
        self.port = ""

    def __enter__(self) -> NodeBoard:
        self.flash.mkdir(parents=True, exist_ok=True)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)  # kept open: the terminal neither hangs up nor echoes when nobody else has it open
        os.set_blocking(self._master, False)
        self.port = os.ttyname(self._slave)
        self.power_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.power_off()
        os.close(self._slave)
        os.close(self._master)

    def power_on(self, cut_after_bytes: int | None = None) -> None:
        """Start the board, as at its first power-on."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by power_off
        script = Path(__file__).with_name("board.mjs")
        options = json.dumps({**self._options, "cut_after_bytes": cut_after_bytes})
        self._process = subprocess.Popen(
            [str(self._node), str(script), options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            preexec_fn=with_parent(),
        )
        process = self._process
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=work, args=(process, self._stopping), daemon=True)
            for work in (self._to_board, self._to_port)
        ]
        for thread in self._threads:
            thread.start()

    def power_off(self) -> None:
        """Pull the plug: only the present content of the flash survives."""
        if self._process is None or self._errors is None:
            return
        self._process.kill()
        self._process.wait()
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()
        self._process = self._errors = None

    def wait(self, timeout_s: float) -> bool:
        """Wait for the board to end by itself, by its power cut; True if it has ended."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def has_said_all(self) -> bool:
        """True if nothing more comes from the board: it has ended, and its last output is at the port."""
        return not any(thread.is_alive() for thread in self._threads[1:])

    @property
    def complaint(self) -> str:
        """Error output of the VM's process, which explains its end; "" as long as all is well."""
        if self._errors is None:
            return ""
        return os.pread(self._errors.fileno(), _READ_BYTES, 0).decode(errors="replace")

    @property
    def pid(self) -> int:
        """Process id of the VM, 0 when the power is off."""
        return 0 if self._process is None else self._process.pid

    def _to_board(self, process: subprocess.Popen[bytes], stopping: threading.Event) -> None:
        assert process.stdin is not None
        while not stopping.is_set():
            if not select.select([self._master], [], [], 0.1)[0]:
                continue
            try:
                process.stdin.write(os.read(self._master, _READ_BYTES))
            except (BlockingIOError, BrokenPipeError):
                continue

    def _to_port(self, process: subprocess.Popen[bytes], _: threading.Event) -> None:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), _READ_BYTES):
            while data:
                try:
                    data = data[os.write(self._master, data) :]
                except BlockingIOError:
                    if not select.select([], [self._master], [], self._patience_s)[1]:
                        break
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    break
