"""The tests of shared code on a MicroPython VM once more, on the VM of simulated boards: its integers are a board's.

Not there: littlefs, which this build of MicroPython lacks.
"""

import importlib.util
import json
from pathlib import Path

import pytest

from support.board.node_board import run_on_node
from support.search import SEED, seeds

HERE = Path(__file__).parent


def module(name):
    """A module of tests beside this one, running its scripts on a simulated board."""
    spec = importlib.util.spec_from_file_location(f"{name}_on_node", HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    loaded.run_on_board = run_on_node
    return loaded


agent, cores = module("test_board_agent"), module("test_board_cores")
streaming, group, protocol = (
    module("test_streaming_join_board"),
    module("test_group_board"),
    module("test_protocol_board"),
)

hardware, stamp = module("test_hardware_board"), module("test_edge_stamp_board")


def decoded(cases, folder):
    """Results of the cases by the decoders on Node."""
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return [json.loads(line) for line in run_on_node(hardware.SCRIPT, str(path)).splitlines()]


hardware._on_board = decoded
agent.SEEDS = agent.ON_THE_VM = range(1, 5 if SEED else 3)  # of the twelve lives, those that run on the VM
lives = agent.lives
test_the_agent_gives_the_same_events = agent.test_the_vm_gives_the_same_events
test_the_clock_counts_the_same = cores.test_the_clock_of_a_board_counts_there_as_here
test_arrivals_give_the_same_pairs = streaming.test_arrivals_give_the_same_pairs_on_the_board
test_rules_derive_the_same = streaming.test_the_rules_of_a_gateway_derive_the_same_on_the_board
test_golden_rules_are_the_same = streaming.test_golden_rules_are_the_same_on_the_board
test_a_busy_rule_fits = streaming.test_a_busy_rule_fits_a_board
test_groups_make_the_same_states = group.test_what_a_gateway_is_given_makes_the_same_states_on_the_board
test_a_large_group_fits = pytest.mark.deep(group.test_a_large_group_fits_a_board)  # nine members are below
test_a_group_of_nine_fits = group.test_a_group_of_nine_takes_a_tenth_of_a_boards_heap
test_probabilities_are_equal = protocol.test_probabilities_are_equal
test_messages_round_trip = protocol.test_readings_and_messages_round_trip
test_hostile_bytes_get_the_same_verdict = protocol.test_hostile_bytes_get_the_same_verdict
test_golden_vectors = protocol.test_golden_vectors
test_what_the_interpreter_lets_through_is_refused = protocol.test_what_the_interpreter_lets_through_is_refused
test_published_frames = hardware.test_published_frames_on_the_board
test_damaged_streams = hardware.test_damaged_streams_on_the_board


def test_replayed_reads_give_the_same_stamps(tmp_path):
    """Runs with cycles, stalls, merged chunks and refused times."""
    cases = [stamp._case(seed) for seed in seeds(100)]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    spec = importlib.util.spec_from_file_location("edge_stamp_replay", stamp.SCRIPT)
    here = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(here)
    expected = [here.replay(case) for case in cases]
    assert [json.loads(line) for line in run_on_node(stamp.SCRIPT, str(path)).splitlines()] == expected
    assert any(results[-1] for results in expected)
