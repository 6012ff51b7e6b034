"""What ends flashing early."""


class FlashError(Exception):
    """A board that cannot be flashed; the text says what was found, what was expected and what to do next."""
