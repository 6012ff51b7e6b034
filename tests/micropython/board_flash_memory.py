"""On the board's VM: the flash log when memory runs out at the end of each write. Prints what it holds then."""

import micropython
from whenabouts_edge.board.flash_log import FlashLog


class Flash:
    """Files in memory; while `locks`, a write ends with all memory in use."""

    def __init__(self):
        self.files = {}
        self.locks = self.locked = False

    def read(self, name, offset, size):
        return bytes(self.files.get(name, b"")[offset : offset + size])

    def write(self, name, offset, data):
        self.files[name] = bytes(self.files.get(name, b"")[:offset]) + data
        if self.locks:
            micropython.heap_lock()
            self.locked = True

    def unlock(self):
        if self.locked:
            micropython.heap_unlock()
        self.locks = self.locked = False


def append(flash_log, flash, size):
    payload, failed = bytes(size), 0
    flash.locks = True
    try:
        flash_log.append(3, payload)
    except MemoryError:
        failed = 1
    flash.unlock()
    return failed


flash = Flash()
flash_log = FlashLog(flash, 2, 4096, 7)
failed = 0
for n in range(6):
    failed += append(flash_log, flash, 1500)  # two fill a segment
    if n % 2:
        print(flash_log.numbers()[flash_log.boot], flash_log.readings)
        flash_log.landed(flash_log.boot, flash_log.next_seq - 1)
print("failed", failed)
