"""The fuzzer finds faults that were planted, repeats a run by its seed, and finds none in the product."""

import os
import time

import cbor2
import pytest

from fuzz.__main__ import CORPUS, entry, main
from fuzz.fuzzer import Finding, check_input, fuzz_inputs, fuzz_seconds, shrunk
from fuzz.targets import targets
from support import search
from whenabouts_hardware import READERS
from whenabouts_protocol import decode_batch

QUICK, DEEP = 5000, 100_000  # inputs of a run
SEED = int(search.SEED) if search.SEED.isdigit() else 1 if os.environ.get("CI") else time.time_ns() % 1_000_000
FAST = [name for name in (target.name for target in targets()) if name not in ("rule-file", "ingest")]


def target(name):
    """A target with its seeds as they are at the start."""
    [found] = [target for target in targets() if target.name == name]
    return found


def planted(name, fault):
    """A target whose check also calls `fault` with inputs that it accepted."""
    faulty = target(name)
    check = faulty.check

    def check_and_break(data):
        accepted = check(data)
        if accepted:
            fault(data)
        return accepted

    faulty.check = check_and_break
    return faulty


def looks_up_a_value_for_each_unit(data):
    """The fault of a decoder: IndexError for a reading with a unit and no value."""
    readings = decode_batch(data)
    values = [reading.value for reading in readings if reading.value is not None]
    units = [reading for reading in readings if reading.unit is not None and reading.value is None]
    assert not units or values[len(values)] is None


def narrow_decoder():
    """The target `batch` with the fault, without the seeds that show it."""
    faulty = planted("batch", looks_up_a_value_for_each_unit)
    for data in faulty.seeds.copy():
        try:
            check_input(faulty, data)
        except Finding:
            faulty.seeds.remove(data)
    return faulty


def test_a_planted_fault_in_a_rare_structure_is_found_shrunk_and_repeatable():
    """From seeds without the structure; the shrunk input shows the fault too, and the seed gives the same input again."""
    faulty = narrow_decoder()
    with pytest.raises(Finding) as first:
        fuzz_inputs([faulty], seed=7, inputs=20_000)
    assert first.value.cause == "IndexError"
    small = shrunk(faulty, first.value)
    assert len(small) <= len(first.value.data)
    with pytest.raises(Finding, match="IndexError"):
        check_input(faulty, small)
    with pytest.raises(Finding) as second:
        fuzz_inputs([narrow_decoder()], seed=7, inputs=20_000)
    assert second.value.data == first.value.data


@pytest.mark.parametrize("cause", ["AssertionError", "memory", "time", "no end"])
def test_every_property_can_fail(cause, monkeypatch):
    """A wrong value, too much memory, too much time, and a check that does not end: each is a finding of its own name."""
    if cause == "no end":
        monkeypatch.setattr("fuzz.fuzzer.END_S", 0.3)

    def fault(data):
        assert cause != "AssertionError"
        held = bytearray(10_000_000) if cause == "memory" else bytearray()
        spent = 0
        while cause == "no end" or (cause == "time" and spent < 100_000):
            spent += 1
        assert held or cause != "memory"

    faulty = planted("ack", fault)
    if cause == "time":
        faulty.fixed_s = 0.0001
    with pytest.raises(Finding) as caught:
        fuzz_seconds([faulty], seed=1, seconds=20)
    assert caught.value.cause == cause


def test_a_reader_whose_frames_depend_on_chunks_is_found(monkeypatch):
    """A decoder that loses the last byte of every second chunk."""
    faulty = target("reader-yrm100")
    decoder = type(READERS["yrm100"].new_decoder())
    feed = decoder.feed
    monkeypatch.setattr(decoder, "feed", lambda self, data: feed(self, data if self._offset == 0 else data[:-1]))
    with pytest.raises(Finding, match=r"other frames in chunks|lost bytes"):
        fuzz_inputs([faulty], seed=1, inputs=20_000)


def test_an_ingest_that_loses_a_reading_is_found(monkeypatch):
    """A bridge that takes a batch and forgets its last reading."""
    from whenabouts_cloud.ingest.bridge import Bridge

    take = Bridge.take

    def forgetful(self, topic, payload, token):
        take(self, topic, payload, token)
        for readings in self._waiting.values():
            del readings[-1:]

    monkeypatch.setattr(Bridge, "take", forgetful)
    with pytest.raises(Finding, match="readings are accounted for"):
        fuzz_inputs([target("ingest")], seed=1, inputs=20)


def test_the_command_reports_seed_target_input_and_how_to_repeat(tmp_path):
    """One line repeats it; the input is kept in the corpus, shrunk, in a form that the command reads."""
    faulty = planted("heartbeat", lambda data: [][len(cbor2.loads(data)) // 99])
    with pytest.raises(SystemExit) as ended:
        main(["--inputs", "3000", "--seed", "5", "--corpus", str(tmp_path)], [faulty])
    [path] = tmp_path.iterdir()
    said = str(ended.value)
    assert "target heartbeat, seed 5: IndexError" in said
    assert f"python -m fuzz {path}" in said
    name, data = entry(path)
    assert name == "heartbeat"
    assert data.hex() in said
    with pytest.raises(Finding):
        check_input(faulty, data)
    main([str(path)])  # the product itself takes it


def test_the_command_reports_rates_and_shares(tmp_path, capsys):
    """Of each target, and the seed even if none was given."""
    main(["--minutes", "0.01", "--target", "ack", "--target", "cbor", "--corpus", str(tmp_path)])
    said = capsys.readouterr().out
    assert "fuzz: seed " in said
    assert said.count("%") == 2
    assert "nothing found" in said
    with pytest.raises(SystemExit):
        main(["--target", "unknown"])


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.hex")), ids=lambda path: path.stem)
def test_inputs_of_the_corpus_keep_every_property(path):
    """Inputs that once mattered, and some of rare structures."""
    name, data = entry(path)
    check_input(target(name), data)


def test_the_corpus_is_small():
    """It is read in each run; the fuzzer makes the rest again from the vectors."""
    files = list(CORPUS.iterdir())
    assert 0 < len(files) <= 200
    assert sum(path.stat().st_size for path in files) < 200_000


@pytest.mark.parametrize("name", FAST)
def test_nothing_is_found_in_messages_and_readers(name):
    """Some hundred inputs of each kind, other ones in each run; every kind has inputs that are accepted."""
    [tally] = fuzz_inputs([target(name)], SEED, QUICK // len(FAST)).values()
    assert 0 < tally.accepted <= tally.inputs


@pytest.mark.parametrize(("name", "inputs"), [("rule-file", 40), ("ingest", 6)])
def test_nothing_is_found_in_rule_files_and_the_ingest(name, inputs):
    """Fewer inputs, each of which takes longer."""
    [tally] = fuzz_inputs([target(name)], SEED, inputs).values()
    assert tally.inputs == inputs


@pytest.mark.deep
def test_nothing_is_found_in_many_inputs():
    """A hundred thousand, over all targets."""
    tallies = fuzz_inputs(targets(), SEED, DEEP)
    assert sum(tally.inputs for tally in tallies.values()) >= DEEP - len(tallies)


@pytest.fixture(autouse=True)
def said_seed():
    """The seed of a failing test is in its output."""
    print(f"fuzz: seed {SEED}")
