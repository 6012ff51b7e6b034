"""What a target does, and how modules of clients are imported that not every installation has."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.uri import TargetError


class Target(Protocol):
    """A place that results are delivered to. One thread uses it."""

    def deliver(self, batch: Batch) -> int:
        """Deliver a batch and return the number of results that were sent; return when the target has them durably.

        Any error means that the batch may not be there: the target is closed and given the batch again later. It must end
        within a minute or so if the far side does not answer.
        """

    def close(self) -> None:
        """Drop the connection; the next `deliver` makes another."""


Factory = Callable[[str, str], Target]
"""Makes a target of a URI and the unit of results (`pairs`, `matches`, `counts`, `verdicts`) without connecting.

Raises:
    TargetError: the URI cannot be used, or a module is missing.
"""


def client_library(module: str, extra: str) -> Any:
    """Import a module of an extra.

    Raises:
        TargetError: it is not installed; names the extra.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise TargetError(
            f"found no package {module.partition('.')[0]} ({error}), expected that of the extra: "
            f"pip install 'whenabouts[{extra}]'"
        ) from None
