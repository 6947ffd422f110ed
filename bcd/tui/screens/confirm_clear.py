"""The confirmation before failed versions are forgotten: names them, says what follows, and has Cancel focused.

It holds the versions and not their rows: a list that changes underneath clears nothing else. Keys that were typed
before it was drawn do not count (field report C01).
"""

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from bcd.core.text import clean
from bcd.tui.keys import HELP

_TOO_EARLY_SECONDS = 0.25


class ConfirmClear(ModalScreen[bool]):
    """Ends with True only when the operator moved to the button, or said `y`."""

    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "Cancel", id="confirm.cancel"),
        Binding("y", "answer(True)", "Clear", id="confirm.clear"),
        Binding("n", "answer(False)", "Cancel", show=False),
        Binding("left,right,h,l", "app.focus_next", "Move", show=False),
        HELP,
    ]

    def __init__(self, versions: tuple[str, ...]) -> None:
        super().__init__()
        self.versions = versions
        self._shown_at = float("inf")

    def compose(self) -> ComposeResult:
        """Question, consequence, two buttons."""
        shown = [clean(version) for version in self.versions]
        named = shown[0] if len(shown) == 1 else f"{len(shown)} versions"
        with Vertical(id="confirm"):
            yield Static(Text.styled(f"Clear {named}?", "bold"))
            if len(shown) > 1:
                yield Static(Text(", ".join(shown)), id="confirm-versions")
            yield Static(Text(f"A rollout may then try {', '.join(shown[:3])} here again."), id="confirm-follows")
            with Horizontal(id="confirm-buttons"):
                yield Button(Text("Cancel"), id="cancel")
                yield Button(Text(f"Clear {named}"), id="clear", variant="warning")

    def on_mount(self) -> None:
        """Remember when it could first be seen."""
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._shown_at = time.monotonic()

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001  # an action's argument
        """End with an answer, unless the key was typed before the question was read."""
        if not answer or time.monotonic() - self._shown_at >= _TOO_EARLY_SECONDS:
            self.dismiss(answer)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button answers."""
        self.action_answer(event.button.id == "clear")
