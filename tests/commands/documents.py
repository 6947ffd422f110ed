"""What `--json` printed, held to the published schemas."""

import json
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from bcd.commands.shapes import SHAPES

SCHEMAS = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "schemas"


def document(stdout: str, name: str) -> dict[str, Any]:
    """The one document on stdout, which is of its command's shape: every field, no other, each of its type."""
    read: dict[str, Any] = msgspec.json.decode(stdout)  # which refuses a second document
    assert stdout.endswith("\n")
    assert "NaN" not in stdout
    assert "Infinity" not in stdout
    msgspec.convert(read, SHAPES[name], strict=True)
    assert list(read) == list(get_type_hints(SHAPES[name]))
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    published = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert set(read) == set(published["required"]) == set(published["properties"])
    return read
