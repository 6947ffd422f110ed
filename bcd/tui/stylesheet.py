"""The stylesheet, parsed once a theme.

Textual 8.2.8 parses all of it anew twice for each screen that is opened first, and once more at the start for a theme that
is not its own: a tenth of a second each. The rules are the same as long as the theme's variables are.
"""

from textual.css.stylesheet import Stylesheet


class OnceParsed(Stylesheet):
    """Textual's, which parses anew only where a variable has another value."""

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._parsed_with = variables

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take a theme's values."""
        if variables != self._variables:
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse anew, if there is a reason."""
        if self._variables != self._parsed_with:
            super().reparse()
            self._parsed_with = self._variables
