"""A table of rows: Home and End lead to its first and its last row, and never sideways, away from what names the row."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable


class Rows(DataTable[Text]):
    """Textual's table as all of ours are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", "First row", show=False),
        Binding("end", "scroll_bottom", "Last row", show=False),
    ]

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name for it
        super().__init__(id=id, cursor_type="row", zebra_stripes=True)
