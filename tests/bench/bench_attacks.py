"""The delay of an honest gateway, and the ingest's memory, while another gateway attacks. Prints a table.

    python tests/bench/bench_attacks.py [--seconds 10]

Broker and ingest run with what `enrol` writes; attacker and honest gateway are enrolled. The first row is without an attack,
in the same run. The delay is from the first publication of a reading to its confirmation by the cloud.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim", "tests")]

from support.cloud.attacks import ATTACKS, EVIL, HONEST, LIMIT_S, Attacker, Honest, memory_bytes  # noqa: E402
from support.cloud.ingest import SITE  # noqa: E402
from whenabouts_sim.stack.stack import Stack  # noqa: E402


def measured(honest: Honest, process: psutil.Process, seconds: float) -> tuple[list[float], int]:
    """Delays of the honest gateway's readings, and the largest memory of the ingest."""
    delays, most, ends_s = [], 0, time.monotonic() + seconds
    while time.monotonic() < ends_s:
        delays.append(honest.land())
        most = max(most, memory_bytes(process))
    return delays, most


def shown(name: str, sent: int, delays: list[float], most: int, base_s: float) -> None:
    """Print one row of the table."""
    middle = statistics.median(delays)
    print(f"{name:24} {sent:9} {middle:9.2f} {max(delays):9.2f} {middle / base_s:9.1f} {most >> 20:8}", flush=True)


def main() -> None:
    """Run all attacks in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each attack")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        if not stack.enrol({f"{SITE}/{name}": () for name in (EVIL, HONEST)}):
            sys.exit("bench_attacks: found no mosquitto, which it needs; on Debian: apt-get install mosquitto")
        stack.broker.start()
        part = stack.start_ingest()
        stack.wait("ingest", lambda: part.said("broker.connected"), LIMIT_S)
        honest = Honest(stack.broker.port, stack.enrolment.context(f"{SITE}/{HONEST}"))
        process = psutil.Process(part.process.pid)
        honest.land()
        print(f"{'attack':24} {'sent':>9} {'median s':>9} {'worst s':>9} {'ratio':>9} {'MiB':>8}")
        delays, most = measured(honest, process, seconds)
        base_s = statistics.median(delays)
        shown("none", 0, delays, most, base_s)
        for attack in ATTACKS:
            attacker = Attacker(stack.broker.port, attack(), stack.enrolment.context(f"{SITE}/{EVIL}"))
            delays, most = measured(honest, process, seconds)
            attacker.close()
            shown(attack.__name__, attacker.sent, delays, most, base_s)
        honest.close()


if __name__ == "__main__":
    main()
