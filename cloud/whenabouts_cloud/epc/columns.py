"""The names in a column of keys, as Arrow columns; each distinct key is decoded once."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.epc.rule_words import WORDS, word_of
from whenabouts_cloud.epc.tag_names import checked, name_in

COLUMNS = {  # of EpcName, by what tables call them
    **WORDS,
    "element_string": "element_string",
    "digital_link": "digital_link",
    "epc_filter": "filter",
}
TYPES = {name: pa.int64() if name == "epc_filter" else pa.string() for name in COLUMNS}


def name_columns(keys: Any, prefixes: Collection[str] | None = None) -> pa.Table:
    """A table of COLUMNS, a row for each key; nulls where a key holds no name, or one of no company in `prefixes`.

    keys: an Arrow array or chunked array of texts, also encoded by a dictionary.

    Raises:
        EpcError: the prefixes are none.
    """
    encoded = encoded_texts(keys)
    names = [name_in(key) for key in encoded.dictionary.to_pylist()]
    if prefixes is not None:
        expected = checked(prefixes)
        names = [one if one is not None and one.company_prefix in expected else None for one in names]
    columns = {
        column: pa.array([None if one is None else getattr(one, attribute) for one in names], TYPES[column])
        for column, attribute in COLUMNS.items()
    }
    return pa.table(columns, schema=pa.schema(list(TYPES.items()))).take(encoded.indices)


def word_column(keys: pa.DictionaryArray, word: str) -> pa.DictionaryArray:
    """What a word (`rule_words.word_of`) is for each key, null where it is nothing. Decodes only the keys that occur."""
    occurring = np.unique(keys.indices.drop_null().to_numpy(zero_copy_only=False))
    meant: list[str | None] = [None] * len(keys.dictionary)
    for at in occurring.tolist():
        meant[at] = word_of(keys.dictionary[at].as_py(), word)
    texts = pa.array(meant, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.take(keys.indices), texts.dictionary)


def encoded_texts(keys: Any) -> pa.DictionaryArray:
    """Texts encoded with the dictionary of those that occur; the types of texts are many."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole.cast(pa.string()).dictionary_encode()
