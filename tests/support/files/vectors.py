"""The golden vectors and the schema of the wire, as the tests read them."""

import importlib.util
import json
from types import ModuleType
from typing import Any

from support.paths import REPOSITORY

VECTORS = REPOSITORY / "protocol" / "vectors"
SCHEMA = REPOSITORY / "protocol" / "whenabouts_protocol" / "wire.cddl"


def rows(name: str) -> list[dict[str, Any]]:
    """The entries of one file of vectors."""
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def maker() -> ModuleType:
    """protocol/vectors/make.py as a module."""
    spec = importlib.util.spec_from_file_location("vectors_make", VECTORS / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
