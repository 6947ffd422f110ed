"""What Textual 8 keeps of widgets that are gone, let go of: a console may stay open for weeks."""

from textual._styles_cache import StylesCache
from textual.screen import Screen
from textual.widgets._toast import ToastHolder


def let_go(screen: Screen[None]) -> None:
    """Let go of it; for a screen that comes to be seen.

    A toast that ended while another screen was seen leaves its holder here. And a cache of what two colours make
    together is keyed by the widget that asked, so that it holds the last thousand of them, with all that they drew.
    """
    for holder in screen.query(ToastHolder):
        if not holder.children:
            holder.remove()
    StylesCache.get_inner_outer.cache_clear()
