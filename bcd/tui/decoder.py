"""Input that is no UTF-8: Textual 8.2.8 ends the app on it (field report C02, Textualize/textual #6668).

The crash: after a tmux re-attach the terminal reports the mouse in X10 bytes, and past column 95 those decode as nothing.
"""

from codecs import getincrementaldecoder
from functools import partial

from textual.drivers import linux_driver


def tolerate_any_byte() -> None:
    """From now on, let Textual's terminal driver read a byte that is no text as U+FFFD."""
    lenient = partial(getincrementaldecoder("utf-8"), errors="replace")
    linux_driver.getincrementaldecoder = lambda _: lenient  # type: ignore[attr-defined]  # it is not exported, and is what the driver calls
