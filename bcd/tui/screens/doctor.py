"""Doctor: the findings as a tree by category, the one under the cursor whole beside it, run again on demand."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static, Tree

from bcd.doctor.finding import Finding, Level, Report
from bcd.doctor.remedy import command_in
from bcd.doctor.report.rich_report import STYLES
from bcd.doctor.report.words import MARKS, PROBLEMS, by_category, tally, verdict_line
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View


class DoctorScreen(ConsoleScreen):
    """The doctor's report."""

    NAME = "doctor"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "again", "Run again", id="doctor.again"),
        Binding("y", "copy_hint", "Copy the command", id="doctor.copy"),
        Binding("left", "fold", "Fold", show=False, id="doctor.fold"),
        Binding("right", "unfold", "Unfold", show=False, id="doctor.unfold"),
    ]

    report: reactive[Report | None] = reactive(None)

    class Again(Message):
        """The operator wants the checks run again."""

    class Copy(Message):
        """The operator wants this text on the clipboard."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        """The id of the finding to start on."""
        self._here = False
        self._could_copy = False

    @property
    def view(self) -> View:
        """The finding under the cursor."""
        return View(screen=self.NAME, cursor="" if self._finding is None else self._finding.id)

    def go_to(self, view: View) -> None:
        """Start on a finding."""
        self._wanted = view.cursor

    def body(self) -> Iterable[Widget]:
        """Verdict, tree, detail."""
        yield Static(Text.styled("looking ...", "dim"), id="doctor-verdict")
        tree: Tree[Finding] = Tree("findings", id="doctor-tree")
        tree.show_root = False
        yield Horizontal(tree, VerticalScroll(Static(id="doctor-detail")), id="doctor-body")

    def on_mount(self) -> None:
        """Show the app's last report, and have one made where there is none."""
        super().on_mount()
        self.follow("report", self._take_report)

    def on_screen_resume(self) -> None:
        """Coming here from another screen looks again; Textual says it twice at the start, and after each dialogue."""
        if not self._here:
            self._here = True
            self.post_message(self.Again())

    def on_screen_suspend(self) -> None:
        """Only another screen is elsewhere, a dialogue over this one is not."""
        self._here = self.app.current_mode == self.NAME

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copying is offered where the finding has a command."""
        if action == "copy_hint" and not self._command:
            return False
        return super().check_action(action, parameters)

    def action_fold(self) -> None:
        """Close the branch under the cursor, or go up to it."""
        tree: Tree[Finding] = self.query_one("#doctor-tree", Tree)
        node = tree.cursor_node
        if node is not None and node.parent is not None and not node.allow_expand:
            tree.move_cursor(node.parent)
        elif node is not None:
            node.collapse()

    def action_unfold(self) -> None:
        """Open the branch under the cursor."""
        node = self.query_one("#doctor-tree", Tree).cursor_node
        if node is not None:
            node.expand()

    def take(self, snapshot: Snapshot) -> None:
        """Nothing of the snapshot is shown here but the top bar."""

    def action_again(self) -> None:
        """Run the checks again."""
        self.query_one("#doctor-verdict", Static).update(Text.styled("looking ...", "dim"))
        self.post_message(self.Again())

    def action_copy_hint(self) -> None:
        """Copy the command of the finding under the cursor."""
        self.post_message(self.Copy(self._command))

    def on_tree_node_highlighted(self) -> None:
        """Show the finding under the cursor whole."""
        node = self.query_one("#doctor-tree", Tree).cursor_node
        below = [] if node is None else [child.data for child in node.children if child.data is not None]
        self.query_one("#doctor-detail", Static).update(_together(below) if below else _detail(self._finding))
        if bool(self._command) != self._could_copy:
            self._could_copy = not self._could_copy
            self.refresh_bindings()

    @property
    def _command(self) -> str:
        return "" if self._finding is None else command_in(self._finding.hint)

    @property
    def _finding(self) -> Finding | None:
        node = self.query_one("#doctor-tree", Tree).cursor_node if self.is_mounted else None
        return None if node is None else node.data

    def _take_report(self, report: Report | None) -> None:
        if report is None:
            return
        self.query_one("#doctor-verdict", Static).update(Text.styled(verdict_line(report), "bold"))
        tree: Tree[Finding] = self.query_one("#doctor-tree", Tree)
        before = self._finding
        tree.clear()
        for category, findings in by_category(report):
            loud = tally(findings, PROBLEMS)
            branch = tree.root.add(Text(f"{category}: {loud or tally(findings)}"), expand=bool(loud))
            for finding in sorted(findings, key=lambda f: list(Level).index(f.level)):
                style = "" if finding.level is Level.SKIPPED else STYLES[finding.level]  # dim is faint under the cursor
                label = Text.assemble((f"{MARKS[finding.level]:<5}", style), finding.id.partition(".")[2])
                leaf = branch.add_leaf(label, data=finding)
                is_before = before is not None and (finding.id, finding.message) == (before.id, before.message)
                if is_before or (before is None and finding.id == self._wanted):
                    branch.expand()
                    self.call_after_refresh(tree.move_cursor, leaf)
        tree.root.expand()
        self.call_after_refresh(
            self.on_tree_node_highlighted
        )  # where the finding under the cursor is gone, nobody says so


def _together(findings: Iterable[Finding]) -> Text:
    """A category: a line for each that it holds."""
    text = Text()
    for finding in findings:
        style = STYLES[finding.level]
        text.append(f"{MARKS[finding.level]:<5}", style=style).append(f"{finding.message}\n")
    return text


def _detail(finding: Finding | None) -> Text:
    if finding is None:
        return Text()
    text = Text()
    text.append(f"{MARKS[finding.level]}  {finding.id}\n\n", style=STYLES[finding.level])
    text.append(f"{finding.message}\n")
    if finding.evidence:
        text.append("\nsaw\n", style="dim").append("".join(f"  {line}\n" for line in finding.evidence))
    if finding.hint:
        text.append("\ndo\n", style="dim").append(f"  {finding.hint}\n", style="bold")
    return text.append(f"\nsee {finding.link}", style="dim")
