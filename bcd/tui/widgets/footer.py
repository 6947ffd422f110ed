"""Textual's footer, which lets go of the keys that it drew before.

It is composed anew whenever a key comes or goes, and each key then watches it (`data_bind`). Textual forgets a watcher
that is gone only when what it watches changes, which in a footer never happens: a console that is open for a day would
hold thousands of keys that nobody sees.
"""

from textual.widgets import Footer


class ConsoleFooter(Footer):
    """The keys that hold now."""

    async def recompose(self) -> None:
        """Compose it anew, and forget who is gone."""
        await super().recompose()
        for watchers in getattr(self, "__watchers", {}).values():
            watchers[:] = [(watcher, call) for watcher, call in watchers if not watcher._closing]  # noqa: SLF001
