"""The lab in the command palette, where there is one: the way to its screen, and there its acts."""

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from bcd.tui.screens.lab import LabScreen

_GO = "Go to Lab"


class LabCommands(Provider):
    """Every act of the lab while its screen is on, the way there otherwise."""

    async def discover(self) -> Hits:
        """All of them."""
        screen = self.screen
        if self._elsewhere:
            yield DiscoveryHit(_GO, partial(self.app.switch_mode, "lab"))
        if isinstance(screen, LabScreen):
            for act in screen.acts:
                yield DiscoveryHit(f"{act.group}: {act.title}", screen.doing(act.name), help=act.happens)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        screen = self.screen
        matcher = self.matcher(query)
        if self._elsewhere and (score := matcher.match(_GO)) > 0:
            yield Hit(score, matcher.highlight(_GO), partial(self.app.switch_mode, "lab"))
        if isinstance(screen, LabScreen):
            for act in screen.acts:
                words = f"{act.group}: {act.title}"
                score = matcher.match(words)
                if score > 0:
                    yield Hit(score, matcher.highlight(words), screen.doing(act.name), help=act.happens)

    @property
    def _elsewhere(self) -> bool:
        return getattr(self.app, "lab", None) is not None and not isinstance(self.screen, LabScreen)
