"""A client of paho whose thread ends while `loop_stop` looks at it."""

import threading
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

LOOKS = 2  # of `loop_stop` before it joins


def ending_client() -> mqtt.Client:
    """Its thread is there at the first looks, and then no more, as paho's own thread sets it."""
    looks = [threading.Thread()] * LOOKS

    class Ending(mqtt.Client):
        @property
        def _thread(self) -> threading.Thread | None:
            return looks.pop() if looks else None

        @_thread.setter
        def _thread(self, value: Any) -> None:
            pass

    return Ending(CallbackAPIVersion.VERSION2)
