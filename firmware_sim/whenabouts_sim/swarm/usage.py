"""Resource usage of a process and of the machine, from /proc: processor seconds, memory, bytes written."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_UTIME, _STIME, _RSS = 11, 12, 21  # fields of /proc/PID/stat behind the name, from 0 (proc(5) counts from 3)
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # of the line `cpu` of /proc/stat


@dataclass(frozen=True)
class Used:
    """Sums since the process, or the machine, began; rss_bytes is the present value."""

    cpu_s: float
    rss_bytes: int
    written_bytes: int


def of_process(pid: int) -> Used:
    """Resources used by one process, all its threads together.

    Raises:
        OSError: there is no such process, or no /proc.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu_s = (int(fields[_UTIME]) + int(fields[_STIME])) * _TICK_S
    return Used(cpu_s, int(fields[_RSS]) * _PAGE_BYTES, _written(pid))


def of_machine() -> tuple[float, float]:
    """(busy, waiting for disks) processor seconds of all cores; time taken by a hypervisor counts as busy."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    busy = sum(fields) - fields[_IDLE] - fields[_IOWAIT]
    return busy * _TICK_S, fields[_IOWAIT] * _TICK_S


def _written(pid: int) -> int:
    """Bytes that the process has written to disks; 0 if the kernel does not report them."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)
