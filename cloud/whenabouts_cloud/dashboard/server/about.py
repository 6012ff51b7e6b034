"""What the page and the routes are told about a server, from its options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class About:
    """Where the data is, and what is allowed. publishing: the broker and its credentials, for `questions.publishing`."""

    landing: str
    results: tuple[str, ...] = ()
    rule_file: Path | None = None
    broker: str | None = None
    may_publish: bool = False
    publishing: Mapping[str, Any] = field(default_factory=dict, repr=False)
