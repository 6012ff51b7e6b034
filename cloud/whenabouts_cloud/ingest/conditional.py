"""Writes to an object store that happen only under a condition: the object does not exist, or is the version one knows.

By obstore, with `If-None-Match: *` and `If-Match` on S3, and their like on GCS and Azure; pyarrow.fs has no conditions. One
PUT a write. S3 is chosen by the variables of `store`; of credentials obstore knows those variables and the roles of
machines, containers and web identities, but no AWS_PROFILE.
"""

import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
import obstore.store
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError

from whenabouts_cloud.landing.store import Store

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

TIMEOUT = "20s"  # of one request
RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class Conflict(Exception):
    """The object exists already, or has another version than expected; nothing was written."""


def create(store: Store, path: str, data: bytes) -> "UpdateVersion":
    """Write an object that does not exist yet. If it exists with this very content, an earlier try has written it.

    Raises:
        Conflict: it exists with another content.
        OSError: it may or may not have been written; try again with the same content.
    """
    try:
        return _put(store, path, data, "create")
    except Conflict:
        found = read(store, path)
        if found is None or found[0] != data:
            raise
        return found[1]


def replace(store: Store, path: str, data: bytes, version: "UpdateVersion") -> "UpdateVersion":
    """Write an object in place of a version of it. Its content must be new: a version may be a hash of the content.

    Raises:
        Conflict: it has another version, or is gone.
        OSError: it may or may not have been written.
    """
    return _put(store, path, data, version)


def read(store: Store, path: str) -> tuple[bytes, "UpdateVersion"] | None:
    """The content of an object and its version; None if there is none.

    Raises:
        OSError: the store cannot be reached, or refuses.
    """
    try:
        found = obstore.get(_connected(store.uri, store.variables), path)
        return bytes(found.bytes()), _version(found.meta)
    except (FileNotFoundError, NotFoundError):
        return None
    except (BaseError, OSError) as error:
        raise OSError(_line(error)) from None


def _put(store: Store, path: str, data: bytes, mode: Any) -> "UpdateVersion":
    try:
        return _version(obstore.put(_connected(store.uri, store.variables), path, data, mode=mode, use_multipart=False))
    except (AlreadyExistsError, PreconditionError) as error:
        raise Conflict(_line(error)) from None
    except (BaseError, OSError) as error:
        raise OSError(_line(error)) from None


def _version(found: Any) -> "UpdateVersion":
    known: UpdateVersion = {}
    if found["e_tag"] is not None:
        known["e_tag"] = found["e_tag"]
    if found["version"] is not None:
        known["version"] = found["version"]
    return known


@functools.lru_cache(maxsize=64)
def _connected(uri: str, variables: tuple[tuple[str, str], ...]) -> "ObjectStore":
    """The store of a URI, once a process.

    Raises:
        OSError: its configuration is not complete.
    """
    known = dict(variables)
    endpoint = known.get("AWS_ENDPOINT_URL_S3") or known.get("AWS_ENDPOINT_URL")
    config: Any = {"endpoint": endpoint} if endpoint else None  # the others it reads itself
    try:
        return obstore.store.from_url(
            uri, config=config, client_options={"allow_http": True, "timeout": TIMEOUT}, retry_config=RETRIES
        )
    except (BaseError, ValueError) as error:
        raise OSError(f"{uri}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
