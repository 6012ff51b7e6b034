"""Checksums of footers and of JSON: each changed bit is found, or changes nothing that is read."""

import io
import json
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cloud.landing import EPOCH_US
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import Ledger
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.files import DamagedFileError, data_files, read_footer
from whenabouts_cloud.landing.sealing import (
    CRC_KEY,
    NO_CRC,
    ChecksumError,
    check_footer,
    restored_end,
    seal,
    seal_footer,
    sealed,
    unsealed,
)
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading

ROW = {"site": "hall", "gateway": "gw", "frontier_us": EPOCH_US, "streams": ["a", "b"]}


def flipped(data, bit):
    """Bytes with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_an_object_comes_back_as_it_was_with_and_without_checksum():
    """Also one that is written in pieces."""
    assert unsealed(sealed(ROW)) == ROW == unsealed(json.dumps(ROW).encode())
    text = json.dumps(ROW).encode()[:-1]
    assert unsealed(text + seal(zlib.crc32(text))) == ROW


def test_no_changed_bit_of_an_object_changes_what_is_read():
    """Each is an error, or hits only the name of the checksum, which leaves one more entry."""
    data = sealed(ROW)
    for bit in range(8 * len(data)):
        try:
            found = unsealed(flipped(data, bit))
        except ValueError:
            continue
        assert {name: found[name] for name in ROW} == ROW
        assert len(found) == len(ROW) + 1


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b'{"a":1', b'{"a":1,"crc":2}'])
def test_other_text_is_an_error(data):
    """As is a wrong checksum."""
    with pytest.raises(ValueError, match=r"Expecting|no JSON object|differs"):
        unsealed(data)


def parquet(metadata):
    """A file of one column."""
    table = pa.table({"a": pa.array(range(100), pa.int64())}).replace_schema_metadata(metadata)
    file = io.BytesIO()
    pq.write_table(table, file, write_page_checksum=True)
    return file


def opened(data):
    """As readers open a file."""
    return pa.BufferReader(data)


def test_each_changed_bit_of_a_footer_is_found():
    """A file without a checksum is taken as it is."""
    file = parquet({CRC_KEY: NO_CRC})
    seal_footer(file)
    data = file.getvalue()
    check_footer(opened(data))
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for bit in range(8 * begin, 8 * (len(data) - 8)):
        with pytest.raises(ChecksumError):
            check_footer(opened(flipped(data, bit)))
    check_footer(opened(parquet(None).getvalue()))
    check_footer(opened(b""))
    check_footer(opened(b"12345678"))


def restored(data):
    """A file with its footer put back; None if more than a bit of it has changed."""
    end = restored_end(opened(data))
    return None if end is None else data[: end[0]] + end[1]


def test_each_changed_bit_of_a_footer_is_put_back():
    """Also one of the checksum, of the footer's length, or of the mark at the end of the file."""
    file = parquet({CRC_KEY: NO_CRC})
    seal_footer(file)
    data = file.getvalue()
    assert restored(data) == data
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for bit in range(8 * begin, 8 * len(data)):
        assert restored(flipped(data, bit)) == data


def test_a_changed_length_is_found_before_a_changed_bit_in_what_it_claims():
    """Of the many bits of a longer text one may explain the difference by chance, as with these first bytes."""
    file = parquet({CRC_KEY: NO_CRC})
    seal_footer(file)
    whole = file.getvalue()
    end = whole[-8 - int.from_bytes(whole[-8:-4], "little") :]
    before = (3580).to_bytes(8, "little") + b"x" * ((1 << 16) - 8)
    changed = flipped(before + end, 8 * (len(before + end) - 8) + 16)
    assert restored_end(opened(changed)) == (len(before), end)


def test_a_footer_in_which_more_has_changed_is_not_believed_and_one_without_checksum_is():
    """What the first says may be about other pages."""
    file = parquet({CRC_KEY: NO_CRC})
    seal_footer(file)
    data = file.getvalue()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for first in range(8 * begin, 8 * (len(data) - 8), 61):
        for second in range(first + 1, 8 * (len(data) - 8), 211):
            assert restored(flipped(flipped(data, first), second)) is None
    for other in (parquet(None).getvalue(), b"", b"12345678"):
        assert restored(other) == other


def test_a_changed_bit_in_the_name_of_a_checksum_does_not_switch_it_off():
    """The second one would change what is read: a name, a number."""
    file = parquet({CRC_KEY: NO_CRC})
    seal_footer(file)
    data = file.getvalue()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    name = data.index(CRC_KEY, begin)
    for bit in range(8 * name, 8 * (name + len(CRC_KEY) + 2)):
        with pytest.raises(ChecksumError):
            check_footer(opened(flipped(flipped(data, bit), 8 * (begin + 9))))
    text = sealed({"site": "hall", "frontier_us": 12})
    at = text.index(b"crc")
    for bit in range(8 * at, 8 * (at + 3)):
        with pytest.raises(ValueError, match=r"has changed|codec|Invalid|Expecting|Unterminated"):
            unsealed(flipped(flipped(text, bit), 8 * text.index(b"12")))


def test_a_file_without_the_place_cannot_be_sealed():
    """It was written without it."""
    with pytest.raises(ValueError, match=r"found no whenabouts\.crc in the footer"):
        seal_footer(parquet(None))


def reading(seq):
    """A reading of one gateway."""
    return Reading(
        site="hall", gateway="gw", boot=1, seq=seq, stream="s", kind="tag", key="k", t_min=EPOCH_US, t_max=EPOCH_US + 1
    )


def test_a_changed_bit_of_what_the_ingest_writes_is_found(tmp_path):
    """In the footer of a data file, in a file of watermarks, in the snapshot of its ledger."""
    landing = Landing(Store.at(tmp_path))
    landing.write([reading(0), reading(1)], [("hall/gw", 1, 0, 1)], EPOCH_US)
    landing.write_frontiers([{**ROW, "landed_us": EPOCH_US}])
    landing.snapshot([("hall/gw", 1, 0, 1)])
    landing.close()
    assert check(tmp_path).found == []
    [data] = data_files(tmp_path)
    [frontier] = (tmp_path / "_frontier").glob("*/*.json")
    snapshot = tmp_path / "_ingest" / "ledger.json"
    for file, old in ((data, b'[["hall/gw", 1, 0, 1]]'), (frontier, b"%d" % EPOCH_US), (snapshot, b'"upto": 2')):
        whole = file.read_bytes()
        file.write_bytes(flipped(whole, 8 * (whole.rindex(old) + len(old) - 3)))
        assert [one.file for one in check(tmp_path).found] == [file.relative_to(tmp_path).as_posix()]
        file.write_bytes(whole)
    assert read_footer(Store.at(tmp_path), data.relative_to(tmp_path).as_posix()).rows == 2


def test_an_ingest_does_not_start_on_ranges_that_have_changed(tmp_path):
    """It would acknowledge what has not landed."""
    landing = Landing(Store.at(tmp_path))
    landing.write([reading(0)], [("hall/gw", 1, 0, 0)], EPOCH_US)
    landing.close()
    [data] = data_files(tmp_path)
    whole = data.read_bytes()
    data.write_bytes(flipped(whole, 8 * (whole.rindex(b"0]]"))))
    again = Landing(Store.at(tmp_path))
    with pytest.raises(Exception, match="is damaged"):
        again.recover_into(Ledger())
    again.close()
    with pytest.raises(DamagedFileError, match="its footer differs from its checksum"):
        read_footer(Store.at(tmp_path), data.relative_to(tmp_path).as_posix())
