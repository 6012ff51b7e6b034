"""The pattern of a board's one lamp, as a function of the board's condition and the time.

    fault      flickers, five times a second          the flash fails, or readings are refused
    no_wifi    one flash every two seconds
    no_clock   two flashes                            no time server has answered yet: readings wait for it
    no_broker  three flashes
    running    lit, with a short gap every two seconds

The first that holds is shown. A lamp that does not change shows that the program has stopped.
"""

FAULT, NO_WIFI, NO_CLOCK, NO_BROKER, RUNNING = "fault", "no_wifi", "no_clock", "no_broker", "running"
_FLASHES = {NO_WIFI: 1, NO_CLOCK: 2, NO_BROKER: 3}
_TICK_US, _TICKS = 100_000, 20  # a pattern is 20 ticks


def condition(is_faulty: bool, has_network: bool, has_clock: bool, has_broker: bool) -> str:
    """The first of the five conditions that holds."""
    if is_faulty:
        return FAULT
    if not has_network:
        return NO_WIFI
    if not has_clock:
        return NO_CLOCK
    return RUNNING if has_broker else NO_BROKER


def is_lit(shown: str, now_us: int) -> bool:
    """Return True if the lamp, when it shows this condition, is on at now_us."""
    tick = now_us // _TICK_US % _TICKS
    if shown == FAULT:
        return tick % 2 == 0
    if shown == RUNNING:
        return tick != 0
    return tick % 3 == 0 and tick // 3 < _FLASHES[shown]
