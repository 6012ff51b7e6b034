"""The documents of the repository as tests see them: pages, blocks of commands, and reasons not to run some commands."""

import re
from dataclasses import dataclass
from pathlib import Path

from support.paths import REPOSITORY
from support.sources import tracked_files

# Why a block of commands is not run. It is marked by a line above it: <!-- not run: REASON -->
REASONS = {
    "root": "changes the machine: installs a service",
    "board": "needs a board at a serial port",
    "reader": "needs a reader at a serial port",
    "make": "installs, or runs tests and measurements, this one among them",
    "forever": "goes on until it is stopped; tests of the command start and stop it",
}
# The test module that runs the other commands of a page.
RUN_BY = {
    "docs/tutorial.md": "tests/spark/test_lesson_commands.py",
    "docs/examples/orfid.md": "tests/spark/test_lesson_commands.py",
    "docs/examples/passage.md": "tests/spark/test_lesson_commands.py",
    "docs/examples/feeder.md": "tests/spark/test_lesson_commands.py",
    "docs/examples/real-logs.md": "tests/captures/e2e/test_real_logs_page.py",
    "docs/examples/captures/README.md": "tests/unit/sim/test_recording.py",
    "docs/examples/data/README.md": "tests/unit/sim/test_logs.py",
    "docs/gateways.md": "tests/e2e/test_manual_commands.py",
    "docs/enrolment.md": "tests/e2e/test_manual_commands.py",
    "docs/boards.md": "tests/e2e/test_manual_commands.py",
    "docs/epcis.md": "tests/e2e/test_manual_commands.py",
    "docs/simulate.md": "tests/e2e/test_manual_commands.py",
    "edge/TRACE.md": "tests/e2e/test_manual_commands.py",
}


@dataclass(frozen=True)
class Block:
    """A block of commands: why it is not run, if it is not, and (command, what is shown below it) in order."""

    reason: str | None
    steps: tuple[tuple[str, str], ...]


def pages() -> dict[str, str]:
    """The text of every tracked page by its path in the repository."""
    paths = (path for path in tracked_files() if path.suffix == ".md" and ".github" not in path.parts)
    return {str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8") for path in paths}


def page(name: str) -> str:
    """The text of one page."""
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Every block marked `console`. A line that begins with "> " goes on with the command above it."""
    pairs = re.findall(r"^(?:<!-- not run: ([^\n]*) -->\n)?```console\n(.*?)^```", text, re.M | re.S)
    return [Block(reason or None, tuple(_steps(body))) for reason, body in pairs]


def _steps(body: str) -> list[tuple[str, str]]:
    steps = []
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        lines = part.splitlines(keepends=True)
        more = 1
        while more < len(lines) and re.match(r">( |$)", lines[more]):
            more += 1
        command = "".join([lines[0], *(re.sub(r"^> ?", "", line) for line in lines[1:more])])
        steps.append((command.removesuffix("\n"), "".join(lines[more:])))
    return steps


def fits(shown: str, output: str) -> bool:
    """True if the output is the one that a page shows, in which `...` matches anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("..."))), output, re.S) is not None


def links(text: str) -> list[str]:
    """Files that a page links to, without anchors."""
    outside_code = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", outside_code)


def linked(name: str) -> list[Path]:
    """Paths of the files that a page links to."""
    return [(REPOSITORY / name).parent / link for link in links(page(name))]
