"""Names of tags as Spark columns: what the EPC in a key says (`epc.tag_names`). For classic sessions and Spark Connect.

    df.withColumn("gtin", epc_gtin("key"))
    df.select("*", epc_names("key").alias("name")).where("name.epc_scheme = 'sgtin'")

`epc_names` gives all of COLUMNS as a struct, null for a key that holds no name; the others give one field of it. `prefixes`
are the company prefixes that you expect: other names are null too.

An Arrow UDF: workers, and the server of Spark Connect, need this package. Each distinct key of a batch of rows is decoded
once, and each worker remembers the last ones (`epc.tag_names.REMEMBERED`).
"""

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.epc.columns import TYPES, name_columns
from whenabouts_cloud.epc.tag_names import checked

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str
    Prefixes = Collection[str] | None

STRUCT = ", ".join(f"{name} {'bigint' if kind == pa.int64() else 'string'}" for name, kind in TYPES.items())


def epc_names(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """All that the EPC in a key says, as a struct.

    Raises:
        EpcError: the prefixes are none.
    """
    named = _decoder(None if prefixes is None else tuple(sorted(checked(prefixes))))
    column: Column = named(F.col(key) if isinstance(key, str) else key)
    return column


def epc_uri(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """The pure identity, as in urn:epc:id:sgtin:0614141.812345.6789."""
    return epc_names(key, prefixes).getField("uri")


def epc_gtin(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """The GTIN, 14 digits."""
    return epc_names(key, prefixes).getField("gtin")


def epc_scheme(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """The scheme, as in sgtin."""
    return epc_names(key, prefixes).getField("epc_scheme")


def epc_company_prefix(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """The company prefix, 6 to 12 digits."""
    return epc_names(key, prefixes).getField("company_prefix")


def epc_element_string(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """GS1's element string, with application identifiers."""
    return epc_names(key, prefixes).getField("element_string")


def epc_digital_link(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """GS1's Digital Link, at id.gs1.org."""
    return epc_names(key, prefixes).getField("digital_link")


def epc_filter(key: "ColumnOrName", prefixes: "Prefixes" = None) -> "Column":
    """The filter value."""
    return epc_names(key, prefixes).getField("epc_filter")


@functools.cache
def _decoder(prefixes: tuple[str, ...] | None) -> Any:
    """The UDF; one for equal prefixes, so that Spark runs it once for several fields."""

    def epc_name(keys: pa.Array) -> pa.Array:
        table = name_columns(keys, prefixes)
        columns = [column.combine_chunks() for column in table.columns]
        return pa.StructArray.from_arrays(columns, fields=list(table.schema), mask=columns[0].is_null())

    return F.arrow_udf(epc_name, STRUCT)  # type: ignore[attr-defined]  # PySpark declares no types of it
