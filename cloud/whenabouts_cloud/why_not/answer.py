"""Answers for rules of all kinds."""

from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_cloud.why_not.of_events import EventsAnswer, why_not_events
from whenabouts_cloud.why_not.of_pairs import PairsAnswer, why_not_pairs
from whenabouts_cloud.why_not.of_states import StatesAnswer, why_not_states

Answer = EventsAnswer | PairsAnswer | StatesAnswer


def why_not(landing: Store, rule: Rule, key: str, time_us: int) -> Answer:
    """Explain what became of a key around a time; of a rule about states the key is the name of the group.

    Raises:
        TooManyReadingsError: the answer would need too many readings.
        OSError: the landing cannot be listed.
    """
    if isinstance(rule, CepRule):
        return why_not_events(landing, rule, key, time_us)
    if isinstance(rule, CorrelateRule):
        return why_not_pairs(landing, rule, key, time_us)
    return why_not_states(landing, rule, key, time_us)
