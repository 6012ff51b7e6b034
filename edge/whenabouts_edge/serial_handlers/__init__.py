"""pyserial URL handlers of this package: `replay://`.

Any pyserial program gets them with `serial.protocol_handler_packages.append("whenabouts_edge.serial_handlers")`.
Better is `register()`: pyserial swallows an ImportError inside a handler and reports "protocol not known",
`register()` imports the handler first and so lets the real error out.
"""

import importlib

import serial

_PACKAGE = __name__


def register() -> None:
    """Makes pyserial's serial_for_url() know the handlers of this package; calling it again changes nothing.

    Raises:
        ImportError: a handler cannot be imported; the error names the module that is missing.
    """
    importlib.import_module(f"{_PACKAGE}.protocol_replay")
    if _PACKAGE not in serial.protocol_handler_packages:
        serial.protocol_handler_packages.append(_PACKAGE)
