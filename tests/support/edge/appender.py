"""Run as a program: appends to a spool without end and prints the commits. Arguments: spool file, limit in bytes,
largest file in bytes or 0. Each line is printed and flushed after append returned: `boot first last key`."""

import resource
import signal
import sys
from pathlib import Path

from support.edge.pending import several
from whenabouts_edge.store.spool import Spool, SpoolFull


def main() -> None:
    """Append batches of one to seven readings; if the disk is full, print so and wait on stdin for the word to go on."""
    path, limit_bytes, file_bytes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    spool = Spool(path, limit_bytes)
    if file_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
    count = 0
    while True:
        count += 1
        keys = [f"{count}-{i}" for i in range(1 + count % 7)]
        try:
            message = spool.append(several(keys, 300 * (count % 5)))
        except SpoolFull as error:
            print("full", error, flush=True)
            if sys.stdin.readline() != "go on\n":
                return
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            for message in spool.after(None, 5):
                spool.landed(message.boot, message.last_seq)
                print("landed", message.boot, message.last_seq, flush=True)
            continue
        print(message.boot, message.first_seq, message.last_seq, count, flush=True)


if __name__ == "__main__":
    main()
