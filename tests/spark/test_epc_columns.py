"""Names of tags as Spark columns, and in the rules of jobs."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whenabouts as wa
from spark.cases import same_rows, sides
from support.cloud.landing import EPOCH_US, land, reading, watermark
from support.cloud.tags import NAMED, TAGS
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.epc.tag_names import EpcError
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.spark import epc_columns

GIVEN = pa.table({"n": list(range(len(TAGS))), "the tag": [tag.key for tag in TAGS]})
RULE = """
STREAM dock FROM "dock" DELAY 1 h
STREAM shelf FROM "shelf/+" DELAY 1 h
RULE r CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 50 ms OVER 50 % {tags} KEEP ALL a
"""


def test_columns_of_spark_are_those_of_arrow(spark):
    """All at once and one by one; Spark runs the decoder once for all fields of one select."""
    frame = spark.createDataFrame(GIVEN.to_pandas())
    wanted = wa.epc_names(GIVEN, "the tag")
    named = wa.epc_names(frame, "the tag")
    assert named.columns == wanted.column_names
    assert [row.asDict() for row in named.orderBy("n").collect()] == wanted.to_pylist()
    plan = named._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython [") == 1
    assert plan.partition("ArrowEvalPython [")[2].partition("]")[0].count("epc_name(") == 1
    one_by_one = {
        "uri": epc_columns.epc_uri, "gtin": epc_columns.epc_gtin, "epc_scheme": epc_columns.epc_scheme,
        "company_prefix": epc_columns.epc_company_prefix, "element_string": epc_columns.epc_element_string,
        "digital_link": epc_columns.epc_digital_link, "epc_filter": epc_columns.epc_filter,
    }  # fmt: skip
    selected = frame.select(*(made("`the tag`").alias(name) for name, made in one_by_one.items()), "n").orderBy("n")
    assert [row.asDict() for row in selected.drop("n").collect()] == wanted.select(list(one_by_one)).to_pylist()


def test_what_holds_no_name_is_null_as_a_whole_and_other_companies_too(spark):
    frame = spark.createDataFrame(GIVEN.to_pandas())
    names = frame.select(epc_columns.epc_names("the tag", ["0614141"]).alias("name"), "n").orderBy("n").collect()
    assert [row["name"] is not None for row in names] == [tag.company_prefix == "0614141" for tag in TAGS]
    with pytest.raises(EpcError, match="prefixes: found '06'"):
        epc_columns.epc_uri("the tag", ["06"])
    with pytest.raises(wa.FrameError, match="df: found bigint in n, expected texts"):
        wa.epc_names(frame, "n")


def test_a_job_takes_the_readings_whose_keys_have_the_name(spark, tmp_path):
    """As the rule without the conditions does over readings that are chosen by hand."""
    rng = random.Random(3)
    rows = []
    for seq in range(200):
        begin = EPOCH_US + rng.randrange(3000) * 1000
        rows.append(reading("g", seq, rng.choice(["dock", "shelf/1"]), rng.choice(TAGS).key, begin, begin + 5000))
    landing = tmp_path / "landing"
    land(landing, rows[:120], 0)
    land(landing, rows[120:], 1)
    watermark(landing, {"g": EPOCH_US}, 0)
    named = parse_rules(RULE.format(tags=f'AND a.gtin = "{NAMED[0].gtin}" AND b.epc_scheme != "sscc"')).rules[0]
    path, _ = publish_whole(CORRELATION, [named], spark, landing, tmp_path / "out", 2)
    of = {tag.key: tag for tag in TAGS}
    chosen = [
        row
        for row in rows
        if (
            of[row["key"]].gtin == NAMED[0].gtin
            if row["stream"] == "dock"
            else of[row["key"]].epc_scheme in ("sgtin", "gid")
        )
    ]
    plain = parse_rules(RULE.format(tags="")).rules[0]
    expected = correlate(plain, *sides(chosen, plain))
    assert expected["probability"].null_count not in (0, expected.num_rows)
    assert same_rows(pq.read_table(path.local), expected)
