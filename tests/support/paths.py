"""Where the tests find the facts and captures that are shared between projects and never copied into this one."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def shared_dir() -> Path:
    """The folder with `facts/` and `data/`: WHENABOUTS_SHARED, else `shared` beside the checkout.

    Raises:
        FileNotFoundError: it is not there; a test that needs it must fail, not pass unseen.
    """
    given = os.environ.get("WHENABOUTS_SHARED")
    path = Path(given) if given else REPOSITORY.parent / "shared"
    if not (path / "facts").is_dir():
        raise FileNotFoundError(
            f"shared facts and captures: found nothing at {path}, expected folders facts/ and data/ there; "
            "put them beside the checkout or name them with WHENABOUTS_SHARED"
        )
    return path
