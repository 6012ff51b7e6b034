"""`network` of a board: a Wi-Fi that connects at once."""

STA_IF, AP_IF = 0, 1
STAT_IDLE, STAT_CONNECTING, STAT_GOT_IP = 0, 1, 3


def country(code=None):
    return code


def hostname(name="simulated"):
    return name


class WLAN:
    IF_STA, IF_AP = 0, 1
    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 0, 10555714, 10555667

    def __init__(self, interface=0):
        self._active = self._connected = False

    def active(self, flag=None):
        if flag is not None:
            self._active = bool(flag)
            self._connected = self._connected and self._active
        return self._active

    def connect(self, *_, **__):
        self._connected = self._active

    def disconnect(self):
        self._connected = False

    def isconnected(self):
        return self._connected

    def status(self, what=None):
        if what == "rssi":
            return -50
        return STAT_GOT_IP if self._connected else STAT_IDLE

    def config(self, *_, **__):
        return None

    def ifconfig(self):
        return ("127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1")
