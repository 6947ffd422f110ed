"""Is what the documents say still so? Part of `make check`.

Checks that every error code in the source stands in docs/reference/errors.md and the other way round, that
docs/reference/exit-status.md lists the enum, that every relative link and anchor leads somewhere, that decisions are
numbered without gaps and listed, and that no line is over 120 columns outside tables and fences.

Reads text alone: nothing of bcd is imported, so that a broken tree is checked like a whole one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ERRORS = ROOT / "docs" / "reference" / "errors.md"
EXITS = ROOT / "docs" / "reference" / "exit-status.md"
DECISIONS = ROOT / "docs" / "decisions"
CHECKS = ROOT / "docs" / "reference" / "checks.md"
RUNBOOK = ROOT / "docs" / "operations" / "runbook.md"
LINE_LIMIT = 120

_CODE = re.compile(r"^[a-z]+(-[a-z]+)*$")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^( *)(```|~~~)")


def main() -> int:
    """Print what is wrong, a line each; 1 when anything is."""
    problems = [*_error_codes(), *_exit_statuses(), *_decisions(), *_runbook()]
    for page in _pages():
        problems += _links(page)
        problems += _widths(page)
    for problem in problems:
        sys.stderr.write(f"docs: {problem}\n")
    return 1 if problems else 0


def _pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _error_codes() -> Iterator[str]:
    raised = {code: path for path in sorted(ROOT.glob("bcd/**/*.py")) for code in _codes_in(path)}
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", ERRORS.read_text(), re.MULTILINE))
    for code in sorted(raised.keys() - listed):
        yield f"{_name(ERRORS)} lacks `{code}` ({_name(raised[code])})"
    for code in sorted(listed - raised.keys()):
        yield f"{_name(ERRORS)} lists `{code}`, which nothing raises"


def _codes_in(path: Path) -> Iterator[str]:
    """First arguments of calls to an error class (or to its parent's constructor), and all of a tuple `CODES`."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _RAISES:
                yield from _strings(node.args[0])
        elif isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["CODES"]:
            yield from _strings(node.value)


_RAISES = ("Refusal", "TransferError", "HostError", "UsageError", "NotPermitted", "__init__")


def _strings(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.match(node.value):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _strings(node.body)
        yield from _strings(node.orelse)
    elif isinstance(node, ast.Tuple):
        for element in node.elts:
            yield from _strings(element)


def _exit_statuses() -> Iterator[str]:
    tree = ast.parse((ROOT / "bcd" / "core" / "exits.py").read_text())
    members = {
        str(node.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    listed = set(re.findall(r"^\| (\d+) \|", EXITS.read_text(), re.MULTILINE))
    for status in sorted(members ^ listed, key=int):
        yield f"{_name(EXITS)} and the enum differ about status {status}"


def _decisions() -> Iterator[str]:
    index = (DECISIONS / "README.md").read_text()
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    for number, record in enumerate(records, start=1):
        if not record.name.startswith(f"{number:04}-"):
            yield f"{_name(record)} should be number {number:04}"
        if record.name not in index:
            yield f"{_name(DECISIONS / 'README.md')} does not list {record.name}"


def _runbook() -> Iterator[str]:
    """An entry for each check, in their order; the list of checks is made from the code."""
    checks, entries = (re.findall(r"^### (.+)$", page.read_text(), re.MULTILINE) for page in (CHECKS, RUNBOOK))
    for name in checks:
        if name not in entries:
            yield f"{_name(RUNBOOK)} has no entry for {name}"
    for name in entries:
        if name not in checks:
            yield f"{_name(RUNBOOK)} has an entry for {name}, which is no check"
    if sorted(checks) == sorted(entries) and checks != entries:
        yield f"{_name(RUNBOOK)} has its entries in another order than {_name(CHECKS)}"


def _links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_without_fences(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{_name(page)}: {target} leads nowhere"
        elif anchor and anchor not in _anchors(file):
            yield f"{_name(page)}: {target}: no such heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _without_fences(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _without_fences(page: Path) -> str:
    kept: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def _widths(page: Path) -> Iterator[str]:
    if "Made from the code by `make docs`" in page.read_text():
        return
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if len(line) > LINE_LIMIT and not line.lstrip().startswith("|"):
            yield f"{_name(page)}:{number}: {len(line)} columns"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
