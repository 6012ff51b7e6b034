"""`make fuzz MINUTES=5 SEED=7`: fuzz all targets for a time, or check files of the corpus again.

python -m fuzz --minutes 5 [--seed N] [--target NAME]...
python -m fuzz --inputs 10000000 [--seed N]
python -m fuzz tests/fuzz/corpus/batch-0123456789ab.hex ...
"""

import argparse
import hashlib
import logging
import resource
import sys
import time
from pathlib import Path

from fuzz.fuzzer import Finding, Tally, check_input, ended, fuzz_inputs, fuzz_seconds, shrunk
from fuzz.targets import Target, targets

CORPUS = Path(__file__).parent / "corpus"


def table(tallies: dict[str, Tally]) -> str:
    """Inputs, rate and accepted share of each target."""
    lines = [f"{'target':<20} {'inputs':>10} {'inputs/s':>9} {'accepted':>9} {'MB':>8} {'slowest':>9}"]
    for name, t in tallies.items():
        lines.append(
            f"{name:<20} {t.inputs:>10} {t.inputs / max(t.seconds, 1e-9):>9.0f} {t.accepted / max(t.inputs, 1):>9.1%} "
            f"{t.bytes / 1e6:>8.1f} {1e3 * t.slowest_s:>6.1f} ms"
        )
    return "\n".join(lines)


def saved(target: str, data: bytes, text: str, folder: Path) -> Path:
    """Write an input to the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target}-{hashlib.blake2b(data, digest_size=6).hexdigest()}.hex"
    path.write_text(f"# {' '.join(text.split())[:300]}\n{data.hex()}\n", encoding="utf-8")
    return path


def entry(path: Path) -> tuple[str, bytes]:
    """Target and input of a file of the corpus."""
    text = "".join(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return path.stem.rpartition("-")[0], bytes.fromhex(text)


def described(finding: Finding, target: Target, seed: int, folder: Path) -> str:
    """Shrink a finding, save it, and say how to repeat it."""
    data = shrunk(target, finding)
    path = saved(finding.target, data, str(finding), folder)
    return (
        f"fuzz: target {finding.target}, seed {seed}: {finding}\n"
        f"input of {len(finding.data)} bytes, shrunk to {len(data)}: {data.hex()}\n"
        f"repeat it with: PYTHONPATH=tests .venv/bin/python -m fuzz {path}"
    )


def repeat(paths: list[Path]) -> None:
    """Check files of the corpus.

    Raises:
        Finding: one breaks a property.
    """
    known = {target.name: target for target in targets()}
    for path in paths:
        name, data = entry(path)
        with ended():
            accepted, seconds = check_input(known[name], data)
        print(f"{path.name}: {'accepted' if accepted else 'refused'} in {1e3 * seconds:.1f} ms")


def main(arguments: list[str] | None = None, chosen: list[Target] | None = None) -> None:
    """Run one of the three; exit 1 with a description at the first finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("files", nargs="*", type=Path, help="files of the corpus to check again")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--inputs", type=int, help="number of inputs of all targets together, instead of a time")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--target", action="append", help="one target, may be repeated; all by default")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder for an input that breaks a property")
    given = parser.parse_args(arguments)
    if given.files:
        repeat(given.files)
        return
    known = targets() if chosen is None else chosen
    if unknown := set(given.target or ()) - {target.name for target in known}:
        parser.error(f"found target {unknown}, expected some of {', '.join(target.name for target in known)}")
    known = [target for target in known if not given.target or target.name in given.target]
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    print(f"fuzz: seed {seed}, {len(known)} targets", flush=True)
    try:
        if given.inputs is not None:
            tallies = fuzz_inputs(known, seed, given.inputs)
        else:
            tallies = fuzz_seconds(known, seed, 60 * (given.minutes if given.minutes is not None else 1.0))
    except Finding as finding:
        [target] = [target for target in known if target.name == finding.target]
        sys.exit(described(finding, target, seed, given.corpus))
    print(table(tallies))
    used_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"fuzz: {sum(t.inputs for t in tallies.values())} inputs, nothing found; at most {used_mb} MB of memory")


if __name__ == "__main__":
    logging.disable()  # the ingest warns of what it refuses
    main()
