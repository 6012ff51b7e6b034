"""pyserial URL handlers of this package: `replay://`.

Any pyserial program can add them with `serial.protocol_handler_packages.append("whenabouts_edge.serial_handlers")`.
Prefer `register()`: pyserial swallows an ImportError inside a handler and reports "protocol not known", while
`register()` imports the handler first and so raises the real error.
"""

import importlib

import serial

_PACKAGE = __name__


def register() -> None:
    """Registers the handlers of this package with pyserial's serial_for_url(); calling it again changes nothing.

    Raises:
        ImportError: a handler cannot be imported; the error names the missing module.
    """
    importlib.import_module(f"{_PACKAGE}.protocol_replay")
    if _PACKAGE not in serial.protocol_handler_packages:
        serial.protocol_handler_packages.append(_PACKAGE)
