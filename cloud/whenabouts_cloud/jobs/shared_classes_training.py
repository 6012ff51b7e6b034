"""Session that loads the Java classes the jobs need (`shared_classes`): a batch and a stream of two readings."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.session.session import start_session
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.rules import CorrelateRule, parse_rules
from whenabouts_protocol import Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = """
STREAM dock  FROM "dock/tags" DELAY 1 s
STREAM shelf FROM "shelf/tags" DELAY 1 s
RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 1 s OVER 80 % AND a.key = b.key
"""


def train(spark: "SparkSession", folder: Path) -> list[str]:
    """Run the jobs in `folder`; return Spark's arguments to Java about modules and the class path."""
    landing = Landing(folder / "landing")
    readings = [_reading(n, stream) for n, stream in enumerate(("dock/tags", "shelf/tags"))]
    landing.write(readings, [], landed_us=2_000_000)
    landing.close()
    rule = parse_rules(RULE).rules[0]
    assert isinstance(rule, CorrelateRule)
    publish_whole(CORRELATION, [rule], spark, landing.store, folder / "once", 2)
    query = start_query(
        CORRELATION, {0: rule}, spark, QueryOptions(landing.store, folder / "out", 2, 0), lambda *_: None
    )
    query.processAllAvailable()
    query.stop()
    management = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()  # type: ignore[union-attr]
    given = [str(x) for x in management.getInputArguments()]
    same = [x for x in given if x.startswith(("--", "-XX:+Ignore"))]  # the second kind makes any Java accept the first
    return [*same, "-cp", str(management.getClassPath())]


def _reading(seq: int, stream: str) -> Reading:
    return Reading(
        site="hall",
        gateway="g",
        boot=1,
        seq=seq,
        stream=stream,
        kind="tag",
        key="k",
        t_min=1_000_000,
        t_max=1_000_001,
        clock_state="bounded",
    )


if __name__ == "__main__":
    session = start_session()
    Path(sys.argv[2]).write_text("\n".join(train(session, Path(sys.argv[1]))), encoding="utf-8")
    session.stop()
