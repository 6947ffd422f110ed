"""The lab's acts in the command palette: only where there is a lab."""

from textual.command import DiscoveryHit, Hit, Hits, Provider

from bcd.tui.screens.lab import LabScreen


class LabCommands(Provider):
    """Every act of the lab, while its screen is on."""

    async def discover(self) -> Hits:
        """All of them."""
        screen = self.screen
        if isinstance(screen, LabScreen):
            for act in screen.acts:
                yield DiscoveryHit(f"{act.group}: {act.title}", screen.doing(act.name), help=act.happens)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        screen = self.screen
        matcher = self.matcher(query)
        if isinstance(screen, LabScreen):
            for act in screen.acts:
                words = f"{act.group}: {act.title}"
                score = matcher.match(words)
                if score > 0:
                    yield Hit(score, matcher.highlight(words), screen.doing(act.name), help=act.happens)
