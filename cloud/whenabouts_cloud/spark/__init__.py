"""For any Spark program: the landing as a data source, names of tags, and joins in time, as columns and of large frames.

`sorted_files` and `file_slabs` read time-ordered Parquet without a shuffle, `native` joins any two frames. Importing this
package starts nothing and does not import pyspark; the names below are loaded at first use.

    from whenabouts_cloud.spark import within_probability
    near = pairs.where(within_probability("a_min", "a_max", "b_min", "b_max", 1_000_000) >= 0.8)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenabouts_cloud.spark.epc_columns import (
        epc_company_prefix,
        epc_digital_link,
        epc_element_string,
        epc_filter,
        epc_gtin,
        epc_names,
        epc_scheme,
        epc_uri,
    )
    from whenabouts_cloud.spark.landing_source import LandingSource
    from whenabouts_cloud.spark.probability_columns import (
        between_at_least,
        between_probability,
        deadline_at_least,
        deadline_probability,
        delay_at_least,
        delay_probability,
        within_at_least,
        within_probability,
    )

__all__ = [
    "LandingSource",
    "within_probability",
    "deadline_probability",
    "delay_probability",
    "between_probability",
    "within_at_least",
    "deadline_at_least",
    "delay_at_least",
    "between_at_least",
    "epc_names",
    "epc_uri",
    "epc_gtin",
    "epc_scheme",
    "epc_company_prefix",
    "epc_element_string",
    "epc_digital_link",
    "epc_filter",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a name of `__all__` with its module."""
        from whenabouts_protocol.lazy import load

        homes = (
            ("landing_source", __all__[0]),
            ("probability_columns", " ".join(one for one in __all__[1:] if not one.startswith("epc_"))),
            ("epc_columns", " ".join(one for one in __all__ if one.startswith("epc_"))),
        )
        return load(__name__, name, homes)
