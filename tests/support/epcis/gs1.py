"""What GS1 says about documents: faults by its schema, hashes by its program."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
from epcis_event_hash_generator import hash_generator, json_to_py

SCHEMA = Path(__file__).parent / "schema"
FORMATS = jsonschema.FormatChecker([])


@FORMATS.checks("uri")
def _is_uri(value: Any) -> bool:
    return (
        not isinstance(value, str)
        or re.fullmatch(r"[A-Za-z][\w+.-]*:(?:[\w\-.~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+", value, re.A) is not None
    )


@FORMATS.checks("date-time")
def _is_time(value: Any) -> bool:
    text = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
    return not isinstance(value, str) or re.fullmatch(text, value, re.A) is not None


@functools.cache
def _validator() -> jsonschema.Draft7Validator:
    schema = json.loads((SCHEMA / "EPCISDocument.schema.json").read_text())
    return jsonschema.Draft7Validator(schema, format_checker=FORMATS)


def faults(document: bytes | str | dict[str, Any]) -> list[str]:
    """Where a document is not as the schema wants it."""
    value = document if isinstance(document, dict) else json.loads(document)
    return [f"{'/'.join(map(str, one.absolute_path))}: {one.message[:300]}" for one in _validator().iter_errors(value)]


def hashes(document: bytes | str) -> list[str]:
    """The hash of each event of a document, by GS1's program."""
    events = json_to_py.event_list_from_epcis_document_json(json.loads(document))
    found = hash_generator.epcis_hashes_from_events(events)
    assert len(found) == len(events[2]), "GS1's program has failed on an event"
    return found
