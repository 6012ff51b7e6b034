"""What is wrong with the connection although it may stand: in words, for log, status and `doctor`. Pure."""

QUICK_S = 10.0  # a connection that is lost earlier was ended by somebody, not by the network
QUICK_LOSSES = 3  # in a row: another client with this name comes back as often as this one
CALM_S = 60.0  # a connection that has stood for so long shares its name with nobody

_NAME, _FILES, _LENGTH = "name", "files", "length"


class Troubles:
    """The troubles of one client, at most one for each topic and a few more.

    refused: publications that the broker did not permit; oversized: messages that were too long to be read.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._texts: dict[str, str] = {}
        self._quick = 0
        self.refused = self.oversized = 0

    @property
    def texts(self) -> list[str]:
        """One line for each, with an advice behind the last semicolon."""
        return list(self._texts.values())

    def connected(self) -> None:
        """Forget what was wrong on the connection before."""
        self._texts = {key: text for key, text in self._texts.items() if key in (_NAME, _FILES)}

    def lost(self, lasted_s: float, taken_over: bool) -> None:
        """Note the end of a connection. taken_over: the broker said that another client came under this name."""
        self._quick = self._quick + 1 if lasted_s < QUICK_S else 0
        advice = "give each gateway a name of its own, or client_id in [broker]"
        if taken_over:
            self._texts[_NAME] = f"another client uses this name, {self._client_id}; {advice}"
        elif self._quick >= QUICK_LOSSES:
            self._texts[_NAME] = (
                f"another client uses this name, {self._client_id}, or the broker ends connections for a reason in its log: "
                f"found {self._quick} that lasted less than {QUICK_S:.0f} s; {advice}"
            )

    def calm(self) -> None:
        """Note that the connection has stood for CALM_S."""
        self._quick = 0
        self._texts.pop(_NAME, None)

    def not_published(self, topic: str, reason: str) -> str:
        """Note a publication that the broker refused; returns the text if it is new, else ''."""
        self.refused += 1
        return self._say(
            f"write {topic}",
            f"the broker does not let this client publish to {topic}: {reason}; permit it to {self._client_id} there",
        )

    def published(self, topic: str) -> None:
        """Note a publication that the broker took."""
        self._texts.pop(f"write {topic}", None)

    def not_subscribed(self, topic: str, reason: str) -> str:
        """Note a subscription that the broker refused; returns the text if it is new, else ''."""
        return self._say(
            f"read {topic}",
            f"the broker does not let this client read {topic}: {reason}; permit it to {self._client_id} there",
        )

    def too_long(self, topic: str, length: int, limit: int) -> str:
        """Note a message that was not read; returns the text if it is new, else ''."""
        self.oversized += 1
        return self._say(
            _LENGTH,
            f"{topic}: found a message of {length} bytes and did not read it, expected at most {limit}; end its publisher",
        )

    def stale_files(self, problem: str) -> str:
        """Note that renewed files cannot be used, or with '' that they can; returns the text if it is new, else ''."""
        if not problem:
            self._texts.pop(_FILES, None)
            return ""
        return self._say(
            _FILES, f"renewed files cannot be used, the old ones are used on: {problem}; replace them by files that fit"
        )

    def _say(self, key: str, text: str) -> str:
        new = self._texts.get(key) != text
        self._texts[key] = text
        return text if new else ""
