"""Pauses between attempts."""

from whenabouts_edge.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_restart_after_a_reset():
    """Without chance each is what it may be at most."""
    backoff = Backoff(500_000, 3_000_000)
    assert [backoff.pause_us(0) for _ in range(5)] == [500_000, 1_000_000, 2_000_000, 3_000_000, 3_000_000]
    backoff.reset()
    assert backoff.pause_us(0) == 500_000


def test_chance_leaves_out_up_to_half_of_a_pause():
    """By eight bits of whatever number is given, so that the next pause is not shorter for it."""
    pauses = []
    for chance in range(0, 1024, 51):
        backoff = Backoff(512, 4096)
        pauses.append((backoff.pause_us(chance), backoff.pause_us(0)))
    assert all(first == 512 - (chance & 255) for (first, _), chance in zip(pauses, range(0, 1024, 51), strict=True))
    assert {second for _, second in pauses} == {1024}
