"""The project's own small captures: docs/examples/captures, whose README describes how they are made."""

from support.paths import REPOSITORY

FOLDER = REPOSITORY / "docs" / "examples" / "captures"
TRACE = FOLDER / "dock.trace"
TRANSPORT = FOLDER / "dock.transport"
