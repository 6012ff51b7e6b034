"""Names of a package that are loaded with their module when they are first asked for, by the package's `__getattr__`.

Works on CPython and on MicroPython, which asks a package for its submodules there too.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(package: str, name: str, homes: "tuple[tuple[str, str], ...]") -> "Any":
    """The value of a name, or the submodule of that name.

    homes: for each submodule that has names of the package, these names with blanks between.

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
