"""Write the JSON Schemas of the machine output to docs/reference/schemas/, from the types that make it.

With `--check`, write nothing and end with 1 where a file is stale.
"""

import json
import sys
from pathlib import Path

import msgspec

from bcd.commands.shapes import SHAPES

FOLDER = Path(__file__).parent.parent / "docs" / "reference" / "schemas"


def main(arguments: list[str]) -> int:
    """Write or check every schema."""
    stale = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, shape in SHAPES.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(shape)}
        text = json.dumps(schema, indent=2) + "\n"
        path = FOLDER / f"{name}.schema.json"
        if "--check" not in arguments:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run `make docs`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
