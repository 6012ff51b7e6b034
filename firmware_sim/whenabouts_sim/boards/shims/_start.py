# What happens once in a life, before boot.py: the flash becomes the root of the file system, and the shims become modules
# that are there already, like those in the ROM of a board.
import os
import sys
import vfs

import gc
import machine
import network
import socket
import time

sys.path.remove("/shims")
_flash = vfs.VfsPosix("/flash")
vfs.umount("/")
vfs.mount(_flash, "/")
os.chdir("/")
