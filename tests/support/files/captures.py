"""Location of captures of third parties, which are no part of this project: only tests/captures reads them."""

import os
from pathlib import Path

from support.paths import REPOSITORY

REQUIRED = os.environ.get("WHENABOUTS_CAPTURES") == "required"
"""True if their absence is a failure. Otherwise the tests on them are skipped."""


def _data() -> Path:
    given = os.environ.get("WHENABOUTS_SHARED")
    return (Path(given) if given else REPOSITORY.parent / "shared") / "data"


def folder(*parts: str) -> Path:
    """A place below the folder `data`, whether it exists or not: tests are collected where it does not."""
    return _data().joinpath(*parts)


def present() -> bool:
    """True if the captures are there."""
    return _data().is_dir()


def absent() -> str:
    """The message for absent captures: the folder that was looked for, and what to do."""
    return (
        f"captures of third parties: found no folder {_data()}, expected them there; they are no part of this project: "
        "put the folder `shared` beside the checkout or name it with WHENABOUTS_SHARED"
    )


def m6e_nano() -> list[Path]:
    """Dialogues with an M6e Nano, as hs-mercury-api records them: listed by name, because the folder may be absent."""
    names = ("blockErase", "blockPermalockRead", "blockPermalockWrite", "gpi", "gpo", "kill", "params", "read", "write")
    return [folder("m6e-nano-serial", f"{name}.transport") for name in (*names, "writeEpc")]
