"""Lazy loading for a package's `__getattr__`: a name is loaded with its module on first use.

Works on CPython and on MicroPython, where `__getattr__` is also called for submodules.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(package: str, name: str, homes: "tuple[tuple[str, str], ...]") -> "Any":
    """The value of a name, or the submodule of that name.

    homes: pairs of a submodule and the names that it defines for the package, separated by blanks.

    Raises:
        AttributeError: the package has neither.
        ImportError: the module of a name cannot be loaded.
    """
    for home, names in homes:
        if name in names.split():
            return getattr(__import__(package + "." + home, None, None, (name,)), name)
    try:
        return __import__(package + "." + name, None, None, (name,))
    except ImportError:
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
