"""Decides when a board joins its Wi-Fi and when it leaves it to join again. Pure: takes its state, returns a command.

    join --(up)--> up --(lost)--> pause --> join ...        join --(JOIN_US without success)--> leave, pause --> join ...

The pause doubles from attempt to attempt, and is the shortest again once the network has held for STABLE_US.
"""

from whenabouts_edge.backoff import Backoff

JOIN_US = 20_000_000  # to join and get an address; more than a working network needs
PAUSE_US_MIN, PAUSE_US_MAX = 1_000_000, 60_000_000
STABLE_US = 30_000_000


class Wifi:
    """The Wi-Fi of one board. bits: random, so that boards which lose their network together come back one by one.

    is_up: as of the last step. joins, losses: how often.
    """

    def __init__(self, bits: int, now_us: int) -> None:
        self._bits = bits
        self._backoff = Backoff(PAUSE_US_MIN, PAUSE_US_MAX)
        self._until_us: int | None = now_us  # end of the pause, if there is one
        self._since_us = now_us  # start of the attempt, or of being up
        self.is_up = False
        self.joins = self.losses = 0

    def step(self, now_us: int, is_up: bool) -> str:
        """The command to carry out: "join", "leave" or "". is_up: the network is there, with an address."""
        if is_up:
            if not self.is_up:
                self.is_up, self._until_us, self._since_us = True, None, now_us
                self.joins += 1
            elif now_us - self._since_us >= STABLE_US:
                self._backoff.reset()
            return ""
        if self.is_up:
            self.is_up = False
            self.losses += 1
            return self._give_up(now_us)
        if self._until_us is None:
            return self._give_up(now_us) if now_us - self._since_us >= JOIN_US else ""
        if now_us < self._until_us:
            return ""
        self._until_us, self._since_us = None, now_us
        return "join"

    def _give_up(self, now_us: int) -> str:
        self._until_us = now_us + self._backoff.pause_us(self._bits)
        return "leave"
