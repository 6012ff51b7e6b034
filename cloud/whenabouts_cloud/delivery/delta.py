"""Results as rows of a Delta table, each exactly once.

    delta:PATH    delta:s3://BUCKET/PATH    and other stores that delta-rs knows, with its usual variables

A batch is one commit, which names the series and the number of the batch as an application transaction. Delta accepts a
second commit of the same number, so the table is asked before; one process delivers the batches of a folder. Rows are
appended as they are in the folder: a retraction is a further row with the same `result_id`, and its match does not hold.

delta-rs starts threads, which a fork would lose. Nothing forks this process: Spark's Python workers are forked by a daemon
that Java starts.
"""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pyarrow as pa

from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.target import client_library
from whenabouts_cloud.delivery.uri import TargetError, shown


class Delta:
    """One table, read again before each batch."""

    def __init__(self, uri: str, unit: str) -> None:
        self._deltalake = client_library("deltalake", "delta")
        self._table = uri.partition(":")[2]
        if not self._table:
            raise TargetError(f"{shown(uri)}: found no table, expected delta:PATH or delta:s3://BUCKET/PATH")
        if not urlsplit(self._table).scheme:
            self._table = os.path.abspath(self._table)
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        self._options = {"timeout": "30s", "connect_timeout": "10s"} if "://" in self._table else {}
        if endpoint.startswith("http:"):
            self._options["allow_http"] = "true"

    def deliver(self, batch: Batch) -> int:
        lake, schema = self._deltalake, batch.schema
        if lake.DeltaTable.is_deltatable(self._table, self._options):
            table = lake.DeltaTable(self._table, storage_options=self._options)
            stored = table.transaction_version(batch.series)
            if stored is not None and stored >= batch.number:
                return 0
        sent = 0

        def rows() -> Iterator[pa.RecordBatch]:
            nonlocal sent
            for part in batch.tables():
                sent += part.num_rows
                yield from part.to_batches()

        lake.write_deltalake(
            self._table,
            pa.RecordBatchReader.from_batches(schema, rows()),
            mode="append",
            storage_options=self._options,
            commit_properties=lake.CommitProperties(
                app_transactions=[lake.Transaction(app_id=batch.series, version=batch.number)]
            ),
        )
        return sent

    def close(self) -> None:
        """Nothing is kept open."""
