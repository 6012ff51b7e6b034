"""Runs a program under its unit's restrictions, as far as one process can apply them to itself: the filter of system calls,
no memory that is both writable and executable, no capabilities.

The filter is the unit's own, expanded by systemd-analyze and given to the kernel by libseccomp. seccomp_rule_add(3),
systemd.exec(5), capabilities(7), PR_SET_MDWE of prctl(2).
"""

import ctypes
import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

EPERM = 1
REFUSE, ALLOW = 0x00050000 | EPERM, 0x7FFF0000
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
PR_CAPBSET_DROP, CAPABILITIES = 24, 64


def values(unit: str, key: str) -> list[str]:
    """The values that a unit sets a key to, in order."""
    return [line.split("=", 1)[1] for line in unit.splitlines() if line.startswith(f"{key}=")]


def allowed_calls(unit: str) -> set[str]:
    """Names of the system calls that the unit's filters allow."""
    allowed: set[str] = set()
    for line in values(unit, "SystemCallFilter"):
        calls = {call for word in line.removeprefix("~").split() for call in _calls(word)}
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def restrict(unit: str) -> None:
    """Apply the restrictions to this process, permanently."""
    libc = ctypes.CDLL(None, use_errno=True)
    library = ctypes.util.find_library("seccomp")
    assert library, "found no libseccomp, expected it to apply the unit's filter; install libseccomp2"
    seccomp = ctypes.CDLL(library)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    seccomp.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
    ]
    seccomp.seccomp_load.argtypes = [ctypes.c_void_p]
    names = allowed_calls(unit)
    if values(unit, "CapabilityBoundingSet") == [""]:
        for capability in range(CAPABILITIES):  # in force from the next program on; only root has any to drop
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if values(unit, "MemoryDenyWriteExecute") == ["true"]:
        assert libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
    context = seccomp.seccomp_init(REFUSE)
    for name in sorted(names):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # others are of other processors
            assert seccomp.seccomp_rule_add_array(context, ALLOW, number, 0, None) == 0, name
    assert seccomp.seccomp_load(context) == 0


def _calls(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    assert shutil.which("systemd-analyze"), "found no systemd-analyze; on Debian: apt-get install systemd"
    shown = subprocess.run(
        ["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True
    ).stdout
    words = [line.strip() for line in shown.splitlines()[1:]]
    return {call for inner in words if inner and not inner.startswith("#") for call in _calls(inner)}


if __name__ == "__main__":
    restrict(Path(sys.argv[1]).read_text())
    os.execv(sys.argv[2], sys.argv[2:])
