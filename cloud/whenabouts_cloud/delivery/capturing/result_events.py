"""Events of the pairs and matches that a batch has published."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from whenabouts_cloud.delivery.capturing.originals import probabilities
from whenabouts_cloud.epcis.epcis_events import Event, NoEventError, of_result, taken_back, unnamed
from whenabouts_cloud.epcis.landed_keys import keys_of
from whenabouts_cloud.epcis.uris import Names
from whenabouts_cloud.epcis.zoned_times import TimeError
from whenabouts_cloud.landing.store import Store


@dataclass(frozen=True)
class Wording:
    """How results become events. landing: has the keys of readings. loads: rules whose first object contains the others."""

    names: Names = dataclasses.field(default_factory=Names)
    landing: Store | None = None
    loads: frozenset[str] = frozenset()

    def events(
        self, rows: Sequence[dict[str, Any]], out: Store, number: int, now_us: int, problems: list[str] | None = None
    ) -> Iterator[tuple[dict[str, Any], Event | str]]:
        """Yield each row of a batch with its event, or with why it is none. now_us: when retractions are declared.

        problems: gets a sentence about each file of the landing that cannot be read and may have keys of these rows.

        Raises:
            DamagedResultsError: a batch that may have the match which a row takes back is damaged.
        """
        gone = {row["result_id"] for row in rows if row.get("status") == "retracted"}
        chances = probabilities(out, number, gone)
        keys = keys_of(self.landing, unnamed(rows), problems) if self.landing is not None else {}
        for row in rows:
            try:
                if row.get("status") != "retracted":
                    yield row, of_result(row, self.names, keys, self.loads)
                elif row["result_id"] not in chances:
                    yield row, "the match that it takes back is in no batch of the folder"
                else:
                    event = of_result(row, self.names, keys, self.loads, chances[row["result_id"]])
                    yield row, taken_back(event, now_us)
            except (NoEventError, TimeError) as error:
                yield row, str(error)
