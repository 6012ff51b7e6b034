"""The agent with its ports and sockets: one cooperative `step`, called again and again. A thin layer; `agent` decides.

On a board a port is the arguments of `machine.UART`; elsewhere it is the path of a terminal, for simulations.
"""

import gc
import json
import os
import sys
import time

from whenabouts_edge.board import tidy
from whenabouts_edge.board.agent import Agent
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.machine.flash import Flash
from whenabouts_edge.board.machine.net import Tcp, Udp
from whenabouts_edge.board.machine.ticks import Ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

READ_BYTES = 32  # of a port at a time; a shorter read has emptied it
READS_MAX = 8  # of a port in a step
LOOK_UP_US = 30_000_000  # between look-ups of a time server that does not answer: each may wait for seconds
IDLE_MS = 1  # pause between steps
FAULT_SHOWN_US = 10_000_000  # how long the lamp shows a fault
SELDOM = (  # needed at the start and seldom later: unloaded in between, which frees some 8 kB
    "whenabouts_edge.board.announce", "whenabouts_edge.board.config",
    "whenabouts_hardware.readers.catalogue", "whenabouts_protocol.messages.batch",
    "whenabouts_protocol.messages.birth_status", "whenabouts_protocol.messages.heartbeats",
    "whenabouts_protocol.reading", "whenabouts_protocol.topics",
)  # fmt: skip


def now_us_of_ticks() -> "Any":
    """A function that returns microseconds of the tick clock; they never wrap if it is called every few minutes."""
    clock: Any = time
    if not hasattr(time, "ticks_us"):
        return lambda: clock.monotonic_ns() // 1000
    ticks = Ticks(clock.ticks_add(0, -1) + 1)
    return lambda: ticks.at(clock.ticks_us())


def opened(config: "dict[str, Any]") -> "Board":
    """A board with this configuration. Modules that one part of its start needs are unloaded before the next part: a
    board has no memory for all of them at once.

    Raises:
        ValueError: the configuration cannot be used.
        OSError: of flash, ports or files.
    """
    config = _checked(config)
    _let_go(SELDOM)
    board = Board(config)
    _let_go(SELDOM)
    board.agent.prepare()  # the first step unloads the modules that this needs
    return board


def _checked(config: "dict[str, Any]") -> "dict[str, Any]":
    from whenabouts_edge.board.config import checked

    return checked(config)


class Board:
    """A board with its devices, made by `opened` from a checked configuration. Raises as `opened` does."""

    def __init__(self, config: "dict[str, Any]") -> None:
        self._config = config
        self.now_us = now_us_of_ticks()
        now_us = self.now_us()
        flash_log = config["flash_log"]
        _make_folder(flash_log["folder"])
        bits = int.from_bytes(os.urandom(4), "big")
        self.flash_log = FlashLog(Flash(flash_log["folder"]), flash_log["segments"], flash_log["segment_bytes"], bits)
        rules_file = config.get("rules", {}).get("file")
        rules = b"" if rules_file is None else _content(rules_file)
        self.agent = Agent(config, self.flash_log, now_us, rules)
        self.faults = 0  # parts of steps that failed: by flash, network or memory
        self._ports = [_open(one["port"], r.baud) for one, r in zip(config["readers"], self.agent.readers)]
        self._empty_us = [now_us] * len(self._ports)
        self._udp: Udp | None = None
        self._look_up_us = now_us
        self._tcp: Tcp | None = None
        self._has_network = "wifi" not in config
        self._is_dated = False
        self._births = 0
        self._works = True
        self._is_amid_step = False
        self._refused = 0
        self._fault_us: int | None = None
        self._radio: Any = None
        self._lamp: Any = None
        self._watchdog: Any = None
        self._add_devices(bits, now_us)

    def _add_devices(self, bits: int, now_us: int) -> None:
        config = self._config
        if "wifi" in config:
            from whenabouts_edge.board.machine.device import Radio
            from whenabouts_edge.board.machine.wifi import Wifi

            self._wifi = Wifi(bits, now_us)
            self._radio = Radio(config["wifi"]["ssid"], config["wifi"]["password"])
        if "led" in config:
            from whenabouts_edge.board.machine.device import Lamp

            self._lamp = Lamp(config["led"])
        if config["watchdog_s"]:
            from whenabouts_edge.board.machine.device import Watchdog
            from whenabouts_edge.board.machine.watch import Watch

            self._watch = Watch(now_us)
            self._watchdog = Watchdog(config["watchdog_s"])

    def step(self) -> None:
        """Serve every port, socket and device once. Waits only for flash, and for the look-up of a name. Raises neither
        OSError nor MemoryError: a part that fails is counted in `faults`, and the other parts are still done.
        """
        self._is_amid_step = True
        try:
            self._step()
        except MemoryError:  # between two parts
            self.faults += 1
            gc.collect()
        self._is_amid_step = False

    def _step(self) -> None:
        for n in range(len(self._ports)):
            self._guarded(self._serve, n)
        if "wifi" in self._config:
            self._guarded(self._serve_radio)
        if self._has_network:
            self._guarded(self._ask_time)
            self._guarded(self._serve_broker)
        self._works = self._guarded(self._step_agent)
        if self._births != self.agent.births:
            self._births = self.agent.births
            _let_go(SELDOM)
        self._show_state()

    def _guarded(self, work: "Any", *given: int) -> bool:
        try:
            work(*given)
        except OSError:
            self.faults += 1
            return False
        except MemoryError:  # readings still wait to be stored; the next attempt finds collected memory
            self.faults += 1
            gc.collect()
            return False
        return True

    def _step_agent(self) -> None:
        self.agent.step(self.now_us())

    def _serve_radio(self) -> None:
        now_us = self.now_us()
        command = self._wifi.step(now_us, self._radio.is_up())
        if self._wifi.is_up and not self._has_network:
            self._look_up_us = now_us
            self.agent.has_network(now_us)
        elif self._has_network and not self._wifi.is_up:
            self.agent.lost("no Wi-Fi", now_us)
            self._close()
            if self._udp is not None:
                self._udp.close()
                self._udp = None
        self._has_network = self._wifi.is_up
        if command:
            self._radio.do(command)

    def _show_state(self) -> None:
        """Update the lamp and the watchdog, where there are any."""
        agent, store, now_us = self.agent, self.agent.store, self.now_us()
        if self._watchdog is not None:
            works = self._works and not store.fails
            if self._watch.feeds(now_us, works, store.is_due(now_us), store.settled):
                self._watchdog.feed()
        if "led" in self._config:
            from whenabouts_edge.board.machine import lamp

            if not self._works or store.fails or store.refused != self._refused:
                self._refused, self._fault_us = store.refused, now_us
            faulty = self._fault_us is not None and now_us - self._fault_us < FAULT_SHOWN_US
            connected = agent.mqtt is not None and agent.mqtt.connected
            shown = lamp.condition(faulty, self._has_network, agent.clock.state(now_us) != "unbounded", connected)
            self._lamp.show(lamp.is_lit(shown, now_us))

    def stop(self, limit_us: int = 3_000_000) -> "Iterator[None]":
        """The steps of an orderly end, in at most limit_us. If an interrupt left a step unfinished, only the connection
        is closed: half a packet may be out, and the broker publishes the will.
        """
        if self._is_amid_step:
            self._close()
            return
        self.agent.stop(self.now_us())
        until_us = self.now_us() + limit_us
        while self._tcp is not None and self.agent.mqtt is not None and self.now_us() < until_us:
            self._serve_broker()
            _pause()
            yield

    def _serve(self, n: int) -> None:
        port, reader = self._ports[n], self.agent.readers[n]
        while True:
            command = reader.dialogue.due(self.now_us())
            if not command:
                break
            port.write(command)
        for _ in range(READS_MAX):
            entry_us = self.now_us()
            data = port.read()
            if data:
                tidy()
                self.agent.took(n, data, self._empty_us[n], self.now_us() + 1)
            else:
                self.agent.silent(n, entry_us)
            if len(data) < READ_BYTES:
                self._empty_us[n] = entry_us
                break

    def _ask_time(self) -> None:
        exchange, now_us = self.agent.exchange, self.now_us()
        if self._udp is None:
            if now_us < self._look_up_us:
                return
            self._look_up_us = now_us + LOOK_UP_US
            ntp = self._config["ntp"]
            self._udp = Udp(ntp["host"], ntp["port"])
        packet = exchange.due(self.now_us(), os.urandom(8))
        if packet:
            self._udp.send(packet)
        answer = self._udp.read()
        if answer is not None:
            exchange.heard(answer, self.now_us())
        elif exchange.problem and now_us >= self._look_up_us:  # the name may lead to another server by now
            self._udp.close()
            self._udp = None
            exchange.problem = ""

    def _serve_broker(self) -> None:
        agent = self.agent
        try:
            if self._tcp is None:
                if agent.wants_line(self.now_us()):
                    self._begin_line()
            elif agent.mqtt is None:
                self._close()
            elif self._tcp.is_open():
                self._exchange(self._tcp)
        except OSError as error:
            agent.lost(f"broker: {error}", self.now_us())
            self._close()

    def _begin_line(self) -> None:
        broker = self._config["broker"]
        ca_file = broker.get("ca_file")
        if ca_file is None:
            self._tcp = Tcp(broker["host"], broker["port"])
        else:
            from whenabouts_edge.board.machine.tls import Tls

            sample, now_us = self.agent.clock.sample, self.now_us()
            if sample is None:  # certificates have dates
                return
            if not self._is_dated:
                self._is_dated = True
                _date(now_us + sample.offset_us)
            try:
                shown = broker.get("cert_file"), broker.get("key_file")
                self._tcp = Tls(broker["host"], broker["port"], ca_file, *shown)
            except ValueError as error:
                raise OSError(str(error)) from None
        self.agent.begin(self.now_us())

    def _exchange(self, tcp: Tcp) -> None:
        agent = self.agent
        mqtt = agent.mqtt
        assert mqtt is not None
        packet = mqtt.to_write()
        while packet:
            count = tcp.write(packet)
            mqtt.wrote(count, self.now_us())
            packet = mqtt.to_write() if count else b""
        data = tcp.read()
        if data == b"":
            agent.lost("broker: closed the connection", self.now_us())
            self._close()
        elif data:
            agent.heard(data, self.now_us())

    def _close(self) -> None:
        if self._tcp is not None:
            self._tcp.close()
            self._tcp = None


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path)
    except OSError:
        pass  # it exists; if not, the first write fails


def _open(port: "Any", baud: int) -> "Any":
    if type(port) is not dict:
        from whenabouts_edge.board.machine.terminal import Terminal

        return Terminal(port)
    from whenabouts_edge.board.machine.device import Uart

    return Uart(port, baud)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        data: bytes = file.read()
    return data


def _date(utc_us: int) -> None:
    try:
        from whenabouts_edge.board.machine.device import set_real_time_clock

        set_real_time_clock(utc_us)
    except ImportError:
        pass  # no board: the system keeps the time


def _let_go(names: "tuple[str, ...]") -> None:
    """Unload modules where memory is short; they are loaded again when needed."""
    if sys.implementation.name != "micropython":
        return
    for name in names:
        if sys.modules.pop(name, None) is not None:
            package, _, module = name.rpartition(".")
            try:
                delattr(sys.modules[package], module)
            except (AttributeError, KeyError):
                pass  # memory ran out while it was loaded: its package lacks it
    gc.collect()


def steps(path: str) -> "Iterator[None]":
    """Yields after each step of a board with the configuration in this file; a step runs when the next item is requested.
    After an interrupt the steps of an orderly end follow. Raises as `opened` does.
    """
    with open(path) as file:
        board = opened(json.load(file))
    try:
        while True:
            board.step()
            _pause()
            yield
    except KeyboardInterrupt:
        for _ in board.stop():
            yield


def forever(path: str) -> None:
    """Run the configuration in this file until interrupted."""
    for _ in steps(path):
        pass


def _pause() -> None:
    sleep_ms: Any = getattr(time, "sleep_ms", None)
    if sleep_ms is None:
        time.sleep(IDLE_MS / 1000)
    else:
        sleep_ms(IDLE_MS)


if __name__ == "__main__":
    forever(sys.argv[1])
