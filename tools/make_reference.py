"""Write the reference that is made from the code: docs/reference/schemas/*.json and docs/reference/checks.md.

With `--check`, write nothing and end with 1 where a file is stale.
"""

import json
import sys
from itertools import groupby
from pathlib import Path

import msgspec

from bcd.commands.shapes import SHAPES
from bcd.doctor.checks import CHECKS

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


def main(arguments: list[str]) -> int:
    """Write or check every page."""
    stale = []
    for path, text in _pages().items():
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run `make docs`\n")
    return 1 if stale else 0


def _pages() -> dict[Path, str]:
    pages = {REFERENCE / "checks.md": _checks_page()}
    for name, shape in SHAPES.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(shape)}
        pages[REFERENCE / "schemas" / f"{name}.schema.json"] = json.dumps(schema, indent=2) + "\n"
    return pages


def _checks_page() -> str:
    lines = [
        "# The doctor's checks",
        "",
        "Made from the code by `make docs`. Each check is named as `--only`, `--skip` and the JSON name it.",
    ]
    for category, checks in groupby(CHECKS, key=lambda check: check.id.partition(".")[0]):
        lines += ["", f"## {category}"]
        for check in checks:
            lines += ["", f"### {check.id}", "", f"Well when {check.summary}.", "", check.why]
            anchor = check.id.replace(".", "")
            lines += ["", f"[What to do](../operations/runbook.md#{anchor})"]
            if check.network:
                lines += ["", "Needs the network; `--offline` leaves it out."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
