"""Where a job publishes: a folder or a URI, and where Spark keeps the checkpoint that belongs to it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from whenabouts_cloud.landing.store import Store

CHECKPOINT = "_checkpoint"
HADOOP = {"s3": "s3a", "gs": "gs", "abfs": "abfs", "abfss": "abfss", "hdfs": "hdfs"}  # Spark's name of a scheme


@dataclass(frozen=True)
class Output:
    """The place of results, and the place for its checkpoint, which tasks write too.

    A checkpoint is beside the results if these are in a folder. Spark reaches an object store only with jars of Hadoop,
    which not every Spark has, so for results in one it is in a folder of the user unless another place is named.
    """

    store: Store
    named: Store | None = None

    @staticmethod
    def at(place: "str | Path | Store | Output", checkpoint: Store | None = None) -> "Output":
        """The output at a path or URI.

        Raises:
            ValueError: the scheme of the URI is not known.
        """
        return place if isinstance(place, Output) else Output(Store.at(place), checkpoint)

    def below(self, *folders: str) -> "Output":
        """The output of one of several jobs that share this one."""
        inner = "/".join(folders)
        return Output(self.store.at_folder(inner), None if self.named is None else self.named.at_folder(inner))

    @property
    def checkpoint(self) -> Store:
        """Where the checkpoint is."""
        if self.named is not None:
            return self.named
        if self.store.local is not None:
            return self.store.at_folder(CHECKPOINT)
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        digest = hashlib.blake2b(self.store.uri.encode(), digest_size=8).hexdigest()
        return Store.at(home / "whenabouts" / "checkpoints" / digest)

    @property
    def spark_checkpoint(self) -> str:
        """The checkpoint as Spark names it."""
        place = self.checkpoint
        if place.local is not None:
            return str(place.local.resolve())
        scheme, _, rest = place.uri.partition("://")
        return f"{HADOOP[scheme]}://{rest}"

    @property
    def folders(self) -> list[Path]:
        """The folders of this machine that hold the results and the checkpoint; one if they are together."""
        found = [place.local for place in (self.store, self.checkpoint)]
        if found[0] is not None and self.named is None:
            return [found[0]]
        return [place for place in found if place is not None and place.is_dir()]

    def __str__(self) -> str:
        return self.store.uri


Place = Path | Store | Output
"""An output, or where it is with the usual checkpoint."""
