"""`package.json` for `mip`, MicroPython's package installer: the sources of every module that a board may need.

    mpremote mip install ./package.json          from a checkout
    mpremote mip install github:OWNER/REPOSITORY     from a repository, or with `mip` on the board itself

Addresses in it are relative to the file, so it is at the top of the repository. It installs sources, which the board
compiles at each start; `whenabouts-edge flash` copies compiled modules, and only those of the board's readers.

    python -m whenabouts_edge.flash.mip > package.json     renews it
"""

import json
from importlib.metadata import version

from whenabouts_edge.flash import modules
from whenabouts_edge.flash.boards import board, known

_FOLDERS = {"whenabouts_protocol": "protocol", "whenabouts_hardware": "hardware", "whenabouts_edge": "edge"}


def package() -> dict[str, object]:
    """The content of package.json."""
    roots = {root for name in known() for root in board(name).modules}
    paths = modules.needed(sorted(roots), modules.ALL_KINDS)
    places = [modules.place(name, path, ".py") for name, path in paths.items()]
    urls = [[place, f"{_FOLDERS[place.split('/')[0]]}/{place}"] for place in places]
    return {"urls": urls, "deps": [], "version": version("whenabouts")}


def text() -> str:
    """The text of the file: one line for each module, so that a change of one module changes one line."""
    content = package()
    urls = ",\n".join("    " + json.dumps(url) for url in content.pop("urls"))  # type: ignore[attr-defined]
    rest = json.dumps(content)[1:-1]
    return f'{{\n  "urls": [\n{urls}\n  ],\n  {rest}\n}}\n'


if __name__ == "__main__":
    print(text(), end="")
