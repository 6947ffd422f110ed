"""The keys as values: hjkl for every list, and the help drawn from whatever bindings are in force."""

from collections.abc import Iterable
from typing import NamedTuple

from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen

HJKL = tuple(
    Binding(letter, f"app.arrow('{arrow}')", f"as {arrow}", show=False)
    for letter, arrow in (("j", "down"), ("k", "up"), ("h", "left"), ("l", "right"))
)
"""For a screen: each letter is the arrow of its place on the keyboard."""
HELP = Binding("question_mark,f1", "app.help", "Help", show=False)
"""For what covers the app's own bindings."""


class Row(NamedTuple):
    """One line of the help."""

    group: str
    """Where the keys hold: `everywhere`, a screen, or the kind of widget that has the focus."""
    keys: tuple[str, ...]
    """As Textual names them."""
    shown: str
    """As people read them."""
    what: str
    action: str
    enabled: bool


def rows_of(app: "App[int]", active: Iterable[ActiveBinding]) -> tuple[Row, ...]:
    """The help's lines, one an action, in the order in which the keys are looked up."""
    found: dict[tuple[str, str], Row] = {}
    for namespace, binding, enabled, _ in active:
        if binding.system:
            continue
        group = _group(namespace)
        what = binding.description or binding.action.partition("(")[0].replace("_", " ")
        earlier = found.get((group, binding.action))
        shown = app.get_key_display(binding)
        if earlier is None:
            found[group, binding.action] = Row(group, (binding.key,), shown, what, binding.action, enabled)
        else:
            both = earlier.shown if shown in earlier.shown.split() else f"{earlier.shown} {shown}"
            found[group, binding.action] = earlier._replace(keys=(*earlier.keys, binding.key), shown=both)
    return tuple(found.values())


def _group(namespace: object) -> str:
    if isinstance(namespace, App):
        return "everywhere"
    name = getattr(namespace, "NAME", "")
    if isinstance(namespace, Screen):
        return f"on {name.capitalize()}" if name else "here"
    kind = type(namespace).__name__
    return {"DataTable": "in the table", "Tree": "in the tree", "Input": "in the field", "RichLog": "in the log"}.get(
        kind, "in this part"
    )
