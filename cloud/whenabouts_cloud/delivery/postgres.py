"""Results as rows of a PostgreSQL table, each exactly once.

    postgresql://USER@HOST/DATABASE?table=NAME    NAME may begin with a schema; default whenabouts_UNIT

The rest of the URI, passwords too, is libpq's: PGPASSWORD, ~/.pgpass, `passfile=`, `sslmode=` and so on. The table is made
if missing, with the columns of the results and `result_id` as its primary key; lists and structures are `jsonb`. A row
with the id of an earlier one replaces it: that is how a retraction sets `status`. Rows are never deleted.

Rows are copied into a temporary table and from there inserted. The same transaction stores the number of the batch in the
table `whenabouts_delivered`, whose row is locked first, so a batch takes effect once even if two processes deliver it.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.target import client_library
from whenabouts_cloud.delivery.uri import TargetError, shown

TABLE = "table"
DELIVERED = "whenabouts_delivered"
ID = "result_id"
# A server that does not answer is noticed within this; none of it limits a long transaction on a connection that works.
PATIENCE = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4,
    "tcp_user_timeout": 30_000, "application_name": "whenabouts",
}  # fmt: skip
NO_TEXT = "\0"  # PostgreSQL stores no such character; "\ufffd" takes its place


class Postgres:
    """One table. The connection is made at the first batch and kept."""

    def __init__(self, uri: str, unit: str) -> None:
        self._psycopg, self._sql = client_library("psycopg", "postgres"), client_library("psycopg.sql", "postgres")
        parts = urlsplit(uri)
        given = dict(parse_qsl(parts.query))
        self._name = given.pop(TABLE, f"whenabouts_{unit}")
        self._table = self._sql.Identifier(*self._name.split("."))
        conninfo = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(given)))
        try:
            names = self._psycopg.conninfo.conninfo_to_dict(conninfo)
        except self._psycopg.Error as error:
            raise TargetError(
                f"{shown(uri)}: found {error}, expected postgresql://USER@HOST/DATABASE?table=NAME"
            ) from None
        self._conninfo = self._psycopg.conninfo.make_conninfo(**{**PATIENCE, **names})
        self._connection: Any = None

    def deliver(self, batch: Batch) -> int:
        if self._connection is None:
            self._connection = self._psycopg.connect(self._conninfo)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            self._prepare(cursor, batch.schema)
            if not self._is_new(cursor, batch):
                return 0
            return self._insert(cursor, batch)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _prepare(self, cursor: Any, schema: pa.Schema) -> None:
        """Make the tables that are missing. Two that make the same at once would fail, so they take turns."""
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [DELIVERED])
        columns = [self._sql.SQL("{} {}").format(self._column(f.name), self._sql.SQL(_type_of(f))) for f in schema]
        self._run(cursor, "CREATE TABLE IF NOT EXISTS {} ({}, PRIMARY KEY ({}))",
                  self._table, self._list(columns), self._column(ID))  # fmt: skip
        self._run(cursor, "CREATE TABLE IF NOT EXISTS {} (series text, name text, batch bigint, "
                  "PRIMARY KEY (series, name))", self._column(DELIVERED))  # fmt: skip

    def _is_new(self, cursor: Any, batch: Batch) -> bool:
        """Lock the row of the series and move it to this batch; False if the batch is in the table already."""
        at = [batch.series, self._name]
        insert = "INSERT INTO {} VALUES (%s, %s, -1) ON CONFLICT DO NOTHING"
        self._run(cursor, insert, self._column(DELIVERED), values=at)
        self._run(cursor, "UPDATE {} SET batch = %s WHERE series = %s AND name = %s AND batch < %s",
                  self._column(DELIVERED), values=[batch.number, *at, batch.number])  # fmt: skip
        return int(cursor.rowcount) == 1

    def _insert(self, cursor: Any, batch: Batch) -> int:
        names = batch.schema.names
        columns = self._list([self._column(name) for name in names])
        self._run(cursor, "CREATE TEMP TABLE arriving ON COMMIT DROP AS SELECT {}, 0::bigint AS nth FROM {} LIMIT 0",
                  columns, self._table)  # fmt: skip
        nth = 0
        statement = self._sql.SQL("COPY arriving ({}, nth) FROM STDIN").format(columns)
        with cursor.copy(statement) as copy:
            for part in batch.parts():
                for row in part:
                    copy.write_row([*(_stored(row[name]) for name in names), nth])
                    nth += 1
        # A match and its retraction may be in one batch: the later row counts.
        sets = self._list(
            [self._sql.SQL("{0} = EXCLUDED.{0}").format(self._column(name)) for name in names if name != ID]
        )
        self._run(cursor, "INSERT INTO {0} ({1}) SELECT DISTINCT ON ({2}) {1} FROM arriving ORDER BY {2}, nth DESC "
                  "ON CONFLICT ({2}) DO UPDATE SET {3}", self._table, columns, self._column(ID), sets)  # fmt: skip
        return nth

    def _run(self, cursor: Any, text: str, *parts: Any, values: list[Any] | None = None) -> None:
        cursor.execute(self._sql.SQL(text).format(*parts), values)

    def _column(self, name: str) -> Any:
        return self._sql.Identifier(name)

    def _list(self, parts: list[Any]) -> Any:
        return self._sql.SQL(", ").join(parts)


def _type_of(field: pa.Field) -> str:
    if pa.types.is_integer(field.type):
        return "bigint"
    if pa.types.is_floating(field.type):
        return "double precision"
    if pa.types.is_boolean(field.type):
        return "boolean"
    return "text" if pa.types.is_string(field.type) else "jsonb"


def _stored(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(_plain(value))
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(x) for name, x in value.items()}
    if isinstance(value, list):
        return [_plain(x) for x in value]
    return value.replace(NO_TEXT, "\ufffd") if isinstance(value, str) else value
