"""Release check: would this node take that release? Each check of the rules in order, passed, failed or not reached."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from bcd.core.errors import BcdError
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View

if TYPE_CHECKING:
    from bcd.core.acceptance import Acceptance

_MARKS = {
    "passed": ("ok", "green"),
    "failed": ("FAIL", "bold red"),
    "skipped": ("skip", "dim"),
    "not-reached": ("-", "dim"),
}
"""The doctor's words, since a sign may be missing from a font and a colour from a terminal."""


class CheckScreen(ConsoleScreen):
    """The checks over a manifest."""

    NAME = "check"
    AUTO_FOCUS = "VerticalScroll"  # the field would swallow every key
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "edit", "Manifest", key_display="/", id="check.edit"),
        Binding("escape", "leave", "Leave the field", id="check.leave"),
    ]

    answer: reactive["Acceptance | BcdError | None"] = reactive(None)

    class Judge(Message):
        """The operator wants this manifest judged: a path, or its text where it starts with a brace."""

        def __init__(self, given: str) -> None:
            super().__init__()
            self.given = given

    def body(self) -> Iterable[Widget]:
        """The field, and the checks."""
        yield Input(placeholder="press / for a manifest's file or its text; Enter checks it", id="check-given")
        yield VerticalScroll(Static(id="check-answer"))

    def on_mount(self) -> None:
        """Show the app's last answer."""
        super().on_mount()
        self.follow("acceptance", self._take_answer)

    def take(self, snapshot: Snapshot) -> None:
        """The answer comes of itself."""

    def action_edit(self) -> None:
        """Type another one."""
        self.query_one("#check-given").focus()

    def action_leave(self) -> None:
        """Give the keys back to the screen."""
        self.query_one(VerticalScroll).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a field that has the keys can give them back."""
        if action in ("leave", "edit") and (action == "leave") != isinstance(self.focused, Input):
            return False
        return super().check_action(action, parameters)

    @property
    def view(self) -> View:
        """What the field holds."""
        return View(screen=self.NAME, filter=self.query_one("#check-given", Input).value)

    def go_to(self, view: View) -> None:
        """Start with a manifest in the field."""
        self.query_one("#check-given", Input).value = view.filter

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Judge what was given."""
        self.action_leave()
        if event.value.strip():
            self.query_one("#check-answer", Static).update(Text.styled("checking ...", "dim"))
            self.post_message(self.Judge(event.value.strip()))

    def _take_answer(self, answer: "Acceptance | BcdError | None") -> None:
        self.query_one("#check-answer", Static).update(_drawn(answer))


def _drawn(answer: "Acceptance | BcdError | None") -> Text:
    if answer is None:
        return Text.styled("Nothing is changed by a check, and nothing is fetched.", "dim")
    if isinstance(answer, BcdError):
        return Text.styled(f"{answer.message} ({answer.code})\n{answer.hint}", "bold red")
    text = Text()
    if answer.refusal is None:
        text.append("this node would take this release\n\n", style="bold green")
    else:
        text.append(f"refused: {answer.refusal.message} ({answer.refusal.code})\n", style="bold red")
        text.append(f"{answer.refusal.hint}\n\n")
    for check in answer.checks:
        mark, style = _MARKS[check.state]
        text.append(f"{mark:<5}", style=style).append(f"{check.code:<20}", style=style).append(f"  {check.message}\n")
        if check.code == "manifest-signatures" and answer.verification is not None:
            for verdict in answer.verification.signatures:
                text.append(f"    {verdict.kid or '(unread)'}: {verdict.why}\n", style="dim")
    return text
