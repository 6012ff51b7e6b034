"""On the board's VM: the flash log on real littlefs in a block device; power is cut after any number of block operations.

Prints every cut after which something is wrong, then how many cuts were tried. (littlefs prints errors of its own when the
collector closes a file that was open at the cut.)
"""

import gc
import os

from whenabouts_edge.board import flash_log as flash_log_module
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.machine.flash import Flash

BLOCK, BLOCKS = 512, 48
IMAGE = bytearray(BLOCK * BLOCKS)  # of whichever device is alive
flash_log_module.MESSAGE_BYTES_MAX = 60
gc.threshold(-1)  # within a collection no Python can run, and this block device is Python: `run` collects between lives


# Methods that littlefs calls: flashed code lacks methods that are named nowhere.
CALLED = ("readblocks", "writeblocks", "ioctl")


class PowerCut(Exception):
    pass


class Device:
    """Blocks in memory; `left` operations until the power goes, None for never."""

    def __init__(self):
        self.image = IMAGE
        self.left, self.done, self.dead = None, 0, False

    def _spend(self):
        if self.left is not None and self.done >= self.left:
            raise PowerCut
        self.done += 1

    def readblocks(self, n, buf, off=0):
        if self.dead:
            return
        start = n * BLOCK + off
        buf[:] = memoryview(self.image)[start : start + len(buf)]

    def writeblocks(self, n, buf, off=None):
        if self.dead:
            return
        if off is None:
            self.ioctl(6, n)
            off = 0
        start, half = n * BLOCK + off, len(buf) // 2
        try:
            self._spend()
        except PowerCut:
            self.image[start : start + half] = bytes(memoryview(buf)[:half])  # torn
            raise
        self.image[start : start + len(buf)] = bytes(buf)

    def ioctl(self, op, arg):
        if op == 4:
            return BLOCKS
        if op == 5:
            return BLOCK
        if op == 6 and not self.dead:
            self._spend()
            self.image[arg * BLOCK : (arg + 1) * BLOCK] = b"\xff" * BLOCK
        return 0


assert all(hasattr(Device, name) for name in CALLED)


def live(flash, durable, boots, acked):
    """One life of a board; adds to the arguments what is durable and what has landed, as soon as it is so."""
    for _ in range(4):
        flash_log = FlashLog(flash, 3, 150, 7)
        assert not boots or flash_log.boot > max(boots)
        boots.append(flash_log.boot)
        for n in range(8):
            payload = bytes([n]) * (20 + 5 * n)
            first = flash_log.next_seq
            message = flash_log.append(1 + n, payload)
            if message is not None:
                durable.append((flash_log.boot, first, 1 + n, payload))
            if n % 3 == 2:
                boot, first, count = durable[-2][:3]
                acked[boot] = first + count - 1
                flash_log.landed(boot, acked[boot])
                flash_log.save()


def stored(flash_log):
    messages, message = [], flash_log.after(None)
    while message is not None:
        messages.append((message.boot, message.first_seq, message.count, message.payload))
        message = flash_log.after(message.next)
    return messages


def run(fresh, left):
    """One life with a cut; returns what is wrong, and how many operations were done."""
    device = Device()
    device.image[:] = fresh
    os.mount(os.VfsLfs2(device, readsize=32, progsize=32, lookahead=32), "/f")
    device.left, device.done = left, 0
    durable, boots, acked = [], [], {}
    wrong = "no cut" if left is not None else ""
    try:
        live(Flash("/f"), durable, boots, acked)
    except (PowerCut, OSError) as error:
        # littlefs hands its own error to whoever comes after the cut; the life is over either way
        wrong = "" if device.done == left else repr(error)
    os.umount("/f")
    done, device.dead = device.done, True  # files that were open may be closed any time later
    device = Device()
    os.mount(os.VfsLfs2(device, readsize=32, progsize=32, lookahead=32), "/f")
    flash_log = FlashLog(Flash("/f"), 3, 150, 7)
    messages = stored(flash_log)
    own = [m for m in durable if acked.get(m[0], -1) < m[1] + m[2] - 1]
    if [m for m in messages if m in own] != own:
        wrong = "lost"
    elif len([m for m in messages if m not in durable]) > 1:
        wrong = "invented"
    elif boots and flash_log.boot <= max(boots):
        wrong = "boot again"
    elif sum([m[2] for m in messages]) != flash_log.readings:
        wrong = "miscounted"
    os.umount("/f")
    return wrong, done


device = Device()
os.VfsLfs2.mkfs(device, readsize=32, progsize=32, lookahead=32)
fresh = bytes(device.image)
wrong, total = run(fresh, None)
print("without a cut", wrong or "well")
for left in range(total):
    wrong, _ = run(fresh, left)
    if wrong:
        print("cut", left, wrong)
    gc.collect()
print("cuts tried", total)
