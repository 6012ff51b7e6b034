"""Thin drivers of devices that only a board has: UART, lamp, watchdog, Wi-Fi, real-time clock. Loaded where configured."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ_BYTES = 32  # of a UART at a time; `run` treats a shorter read as the last one
_UNIX_EPOCH_YEAR = 1970
_SECONDS_TO_2000 = 946_684_800


class Uart:
    """A UART of the board; port: the arguments of `machine.UART` by name, and `id`."""

    def __init__(self, port: "dict[str, Any]", baud: int) -> None:
        import machine  # type: ignore[import-not-found,unused-ignore]  # only boards have it

        options = dict(port)
        number, rxbuf = options.pop("id"), options.pop("rxbuf", 1024)
        self._uart = machine.UART(number, baud, rxbuf=rxbuf, timeout=0, **options)

    def read(self) -> bytes:
        """Up to READ_BYTES bytes that have arrived."""
        return self._uart.read(READ_BYTES) or b""

    def write(self, data: bytes) -> None:
        """Send a command."""
        self._uart.write(data)


class Lamp:
    """The board's lamp. pin: argument of `machine.Pin`."""

    def __init__(self, pin: "Any") -> None:
        import machine  # type: ignore[import-not-found,unused-ignore]  # only boards have it

        self._pin = machine.Pin(pin, machine.Pin.OUT)
        self._lit: bool | None = None

    def show(self, lit: bool) -> None:
        """Switch the lamp if it changes: on a Pico W the radio drives it, and each switch is a message to the radio."""
        if lit is not self._lit:
            self._lit = lit
            self._pin.value(1 if lit else 0)


class Watchdog:
    """Resets the board when it was not fed for timeout_s. Nothing can stop it."""

    def __init__(self, timeout_s: int) -> None:
        import machine  # type: ignore[import-not-found,unused-ignore]

        self._watchdog = machine.WDT(timeout=1000 * timeout_s)

    def feed(self) -> None:
        """Restart the timeout."""
        self._watchdog.feed()


class Radio:
    """The board's own Wi-Fi as a station."""

    def __init__(self, ssid: str, password: str) -> None:
        import network  # type: ignore[import-not-found,unused-ignore]

        self._ssid, self._password = ssid, password
        self._wlan = network.WLAN(network.STA_IF)
        self._wlan.active(True)

    def is_up(self) -> bool:
        """Return True if the radio has joined a network and has an address."""
        return bool(self._wlan.isconnected())

    def do(self, command: str) -> None:
        """Carry out a command of `wifi.Wifi.step`; returns at once. Raises OSError when the radio refuses."""
        if command == "join":
            self._wlan.connect(self._ssid, self._password)
        elif command == "leave":
            self._wlan.disconnect()


def set_real_time_clock(utc_us: int) -> None:
    """Set the real-time clock, where there is one: certificates are checked by it, and nothing else uses it."""
    import machine  # type: ignore[import-not-found,unused-ignore]

    if not hasattr(machine, "RTC"):  # a PC, whose system sets the clock
        return
    seconds = utc_us // 1_000_000
    if time.gmtime(0)[0] != _UNIX_EPOCH_YEAR:  # boards that count from 2000
        seconds -= _SECONDS_TO_2000
    year, month, day, hour, minute, second, weekday = time.gmtime(seconds)[:7]
    machine.RTC().datetime((year, month, day, weekday, hour, minute, second, 0))
