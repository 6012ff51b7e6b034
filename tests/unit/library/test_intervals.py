"""`wa.interval`, `wa.read_landing`, and what importing them loads."""

import datetime as dt
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pytest

import whenabouts as wa
from support.child import environment
from support.cloud.landing import EPOCH_US, land, reading
from support.library.kinds import KINDS, rows
from whenabouts.intervals import microseconds
from whenabouts.landings import read_landing

AT = dt.datetime(2026, 1, 1, 12, 0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_and_a_delay_widen_a_time_of_any_type(kind):
    """Half a second in either direction, and a fifth that it may be late; the type stays, as fine as microseconds."""
    half, late = dt.timedelta(seconds=0.5), dt.timedelta(seconds=0.2)
    for unit, zone in (("us", None), ("ns", None), ("us", "UTC")):
        frame = KINDS[kind](pa.table({"at": pa.array([AT], pa.timestamp(unit, zone)), "v": [7]}))
        [one] = rows(wa.interval(frame, at="at", error="0.5 s", late=late))
        at = AT.replace(tzinfo=dt.UTC) if zone else AT
        assert [one[name] == at + shift for name, shift in (("t_min", -half - late), ("t_max", half))] == [True, True]
        assert one["v"] == 7
    [one] = rows(wa.interval(KINDS[kind](pa.table({"ts": [1_000_000]})), error=250_000))
    assert (one["t_min"], one["t_max"]) == (750_000, 1_250_000)


def test_a_lazy_frame_stays_lazy():
    assert isinstance(wa.interval(pl.LazyFrame({"ts": [AT]}), error="1 ms"), pl.LazyFrame)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"error": "half a second"}, "error: found 'half a second', expected a duration such as '0.5 s'"),
        ({"error": "0.5 us"}, "error: found '0.5 us'"),
        ({"error": -1}, "error: found -1, expected a duration such as '0.5 s' (us, ms, s, min, h), 0 or more"),
        ({"error": True}, "error: found True"),
        ({"late": None}, "late: found None"),
        ({"at": "when"}, "at: found 'when', expected a column of df: ts, x"),
        ({"at": "x"}, "df: found String in x, expected timestamps, dates or whole numbers of microseconds"),
    ],
)
def test_what_makes_no_interval_is_refused(arguments, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.interval(pa.table({"ts": [5], "x": ["a"]}), **arguments)
    assert text in str(refused.value)


def test_durations_are_texts_timedeltas_or_microseconds():
    found = [microseconds(one, "error") for one in ("2 min", " 1.5ms ", "0 us", dt.timedelta(hours=1), 7)]
    assert found == [120_000_000, 1500, 0, 3_600_000_000, 7]


def test_the_readings_of_a_landing_come_once_each(tmp_path):
    first = [reading("g0", n, "dock/tags", f"k{n}", EPOCH_US, EPOCH_US + n) for n in range(3)]
    land(tmp_path, first, 0)
    land(tmp_path, first[:1], 1)
    whole = wa.read_landing(tmp_path)
    assert wa.read_landing is read_landing
    assert whole["seq"].to_pylist() == [0, 1, 2]
    some = wa.read_landing(tmp_path, columns=["key", "t_max"])
    assert some.schema == pa.schema([("key", pa.string()), ("t_max", pa.int64())])
    assert some.to_pylist()[2] == {"key": "k2", "t_max": EPOCH_US + 2}
    (tmp_path / "empty").mkdir()
    assert wa.read_landing(tmp_path / "empty").num_rows == 0
    with pytest.raises(wa.FrameError, match="columns: found 'when', expected some of site"):
        wa.read_landing(tmp_path, columns=["when"])
    with pytest.raises(wa.FrameError, match="uri: found no folder"):
        wa.read_landing(tmp_path / "nowhere")


def test_importing_loads_nothing_and_all_names_are_there():
    """Before an engine is used neither numpy nor a library of frames is loaded."""
    code = (
        "import sys, whenabouts as wa\n"
        "assert set(dir(wa)) >= {'correlate', 'epc'}\n"
        "print(*sorted({'numpy', 'pandas', 'polars', 'pyarrow', 'narwhals', 'numba', 'lark'} & set(sys.modules)))\n"
        "wa.epc('3074257BF7194E4000001A85')\n"
        "print(*sorted({'numpy', 'pyarrow', 'narwhals'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"
    for name in wa.__all__:
        assert getattr(wa, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'corelate'"):
        _ = wa.corelate
