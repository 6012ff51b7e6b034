"""Laws of the LLRP decoder and encoders, with the codec of llrpkit as the second implementation."""

from hypothesis import given, settings
from hypothesis import strategies as st
from llrpkit.protocol import BitStr, decode_message, messages, params

from support.search import examples
from whenabouts_hardware import READERS
from whenabouts_hardware.network import llrp_messages as llrp
from whenabouts_hardware.network.llrp_decoder import FRAME_BYTES_MAX, LlrpDecoder

often = settings(max_examples=examples(150), deadline=None)
u16, u32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
epcs = st.binary(max_size=30)


@st.composite
def tags(draw):
    """A tag's report with any of its parts, in the order of the standard."""
    epc = draw(epcs)
    return params.TagReportData(
        epc_parameter=params.EPC_96(epc=epc) if len(epc) == 12 else params.EPCData(epc=BitStr.from_bytes(epc)),
        ro_spec_id=draw(st.none() | st.builds(params.ROSpecID, ro_spec_id=u32)),
        antenna_id=draw(st.none() | st.builds(params.AntennaID, antenna_id=u16)),
        peak_rssi=draw(st.none() | st.builds(params.PeakRSSI, peak_rssi=st.integers(-128, 127))),
        channel_index=draw(st.none() | st.builds(params.ChannelIndex, channel_index=u16)),
        last_seen_timestamp_utc=draw(
            st.none() | st.builds(params.LastSeenTimestampUTC, microseconds=st.integers(0, 2**64 - 1))
        ),
        tag_seen_count=draw(st.none() | st.builds(params.TagSeenCount, tag_count=u16)),
        air_protocol_tag_datas=draw(st.lists(st.builds(params.C1G2_PC, pc_bits=u16), max_size=1)),
    )


reports = st.builds(messages.RO_ACCESS_REPORT, tag_report_datas=st.lists(tags(), max_size=4))
statuses = st.builds(params.LLRPStatus, status_code=u16, error_description=st.text(max_size=20))
answers = st.builds(messages.ADD_ROSPEC_RESPONSE, llrp_status=statuses)
good = st.one_of(reports, answers, st.just(messages.KEEPALIVE())).flatmap(
    lambda message: st.builds(message.to_bytes, message_id=u32)
)


def expected(report, last):
    """What the decoder should give for each tag that has an EPC; `last`: the values of earlier tags, until they change."""
    found = []
    for tag in report.tag_report_datas:
        epc = tag.epc_parameter.epc
        own = {"count": 1, "epc": (epc if isinstance(epc, bytes) else epc.data).hex()}
        for name, part in (("antenna", tag.antenna_id), ("rssi", tag.peak_rssi), ("rospec", tag.ro_spec_id)):
            if part is not None:
                last[name] = getattr(part, {"antenna": "antenna_id", "rssi": "peak_rssi", "rospec": "ro_spec_id"}[name])
        if tag.last_seen_timestamp_utc is not None:
            own["last_us"] = tag.last_seen_timestamp_utc.microseconds
        if tag.tag_seen_count is not None:
            own["count"] = tag.tag_seen_count.tag_count
        if own["epc"]:
            found.append(own | last)
    return found


@often
@given(st.lists(reports, min_size=1, max_size=3))
def test_reports_of_another_encoder_are_read_and_what_they_leave_out_is_unchanged(sent):
    """Field by field, in any combination."""
    frames = LlrpDecoder().feed(b"".join(report.to_bytes(message_id=7) for report in sent))
    last = {}
    assert [frame.fields["tags"] for frame in frames] == [expected(report, last) for report in sent]
    assert all(frame.ok for frame in frames)


@often
@given(st.lists(good, max_size=4), st.data())
def test_the_result_does_not_depend_on_how_reads_split_the_bytes(sent, data):
    """Split at every byte, or anywhere."""
    stream = b"".join(sent)
    whole, bytewise, split = LlrpDecoder(), LlrpDecoder(), LlrpDecoder()
    frames = whole.feed(stream)
    assert [frame.raw for frame in frames] == sent
    assert [frame for byte in stream for frame in bytewise.feed(bytes([byte]))] == frames
    at = data.draw(st.integers(0, len(stream)))
    assert split.feed(stream[:at]) + split.flush() + split.feed(stream[at:]) == frames
    assert whole.counters == bytewise.counters == split.counters


@often
@given(st.lists(good | st.binary(max_size=30), max_size=5), st.integers(0, 400), st.integers(0, 255))
def test_any_bytes_are_decoded_refused_or_held_within_a_limit(pieces, at, byte):
    """A flipped byte anywhere; what follows a head that no message can have is noise, and nothing raises."""
    stream = bytearray(b"".join(pieces))
    if stream:
        stream[at % len(stream)] = byte
    decoder = LlrpDecoder()
    frames = decoder.feed(bytes(stream))
    assert len(decoder.pending) < FRAME_BYTES_MAX
    used = sum(len(frame.raw) for frame in frames) + decoder.counters["noise_bytes"] + len(decoder.pending)
    assert used == len(stream)
    lost = [n for n, frame in enumerate(frames) if frame.kind == "lost"]
    assert lost in ([], [len(frames) - 1])
    assert decoder.feed(b"\x04\x3e" + bytes(8)) == [] or not lost
    for frame in frames:
        seen = READERS["llrp"].sightings(frame)
        assert frame.ok or seen == []


@given(st.integers(0, 0xFFFFFFFF).filter(lambda n: not llrp.HEAD_BYTES <= n <= FRAME_BYTES_MAX))
def test_a_length_that_no_message_has_is_not_believed(length):
    """Neither 4 GiB are awaited nor 3 bytes taken for a message."""
    decoder = LlrpDecoder()
    [frame] = decoder.feed(b"\x04\x3d" + length.to_bytes(4, "big"))
    assert (frame.kind, frame.ok) == ("lost", False)
    assert decoder.pending == b""


@often
@given(
    u32, st.integers(1, 0xFFFFFFFF), st.lists(st.integers(1, 64), max_size=5, unique=True),
    st.none() | st.tuples(st.integers(0, 255), st.integers(1, 200)), st.none() | u16, st.none() | st.integers(0, 3),
    st.none() | st.integers(1, 65535),
)  # fmt: skip
def test_requests_are_what_another_decoder_reads(number, rospec, antennas, power, mode, session, population):
    """Every request of the agent, and encoded again by that codec the same bytes."""
    asked = llrp.antenna_settings(power, mode, session, population)
    sent = [
        llrp.get_capabilities(number), llrp.probe(number), llrp.set_config(number, 5000),
        llrp.add_rospec(number, rospec, tuple(antennas), asked), llrp.message(llrp.CLOSE, number),
        llrp.message(llrp.KEEPALIVE_ACK, number), llrp.message(llrp.ENABLE_REPORTS, number),
        *(llrp.of_rospec(kind, number, rospec) for kind in range(llrp.DELETE_ROSPEC, llrp.ENABLE_ROSPEC + 1)),
    ]  # fmt: skip
    for raw in sent:
        read = decode_message(raw)
        assert read.message_id == number
        assert read.to_bytes() == raw
    added = decode_message(sent[3]).ro_spec
    [inventory] = added.spec_parameters
    assert (added.ro_spec_id, inventory.antenna_ids) == (rospec, antennas or [0])
    assert (added.ro_report_spec.ro_report_trigger, added.ro_report_spec.n) == (1, 1)
    contents = added.ro_report_spec.tag_report_content_selector
    assert (contents.enable_antenna_id, contents.enable_peak_rssi, contents.enable_ro_spec_id) == (True, True, True)
    settings_made = inventory.inventory_parameter_specs[0].antenna_configurations
    assert bool(settings_made) is any(given is not None for given in (power, mode, session, population))
    if power:
        [made] = settings_made
        assert (made.rf_transmitter.hop_table_id, made.rf_transmitter.transmit_power) == power
