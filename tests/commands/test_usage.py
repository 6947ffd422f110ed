"""What a person who mistypes, or asks how, is told."""

import inspect
import re
from collections.abc import Callable, Iterator

import click
import pytest

from bcd import cli
from bcd.commands.root import bcd as root
from bcd.core.exits import ExitStatus
from tests.commands.node_dir import Node
from tests.commands.running import Done, Runner, acting_on_a_terminal

Call = Callable[..., Done]


def commands(
    command: click.Command = root, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group there is, with the words that lead to it."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


COMMANDS = list(commands())
IDS = [" ".join(("bcd", *path)) for path, _ in COMMANDS]


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["updat"], "bcd update"),
        (["upgrade"], "bcd update"),
        (["versoin"], "bcd version"),
        (["complete"], "bcd completion"),
        (["doctr"], "bcd doctor"),
        (["help"], "bcd --help"),
        (["update", "chek"], "bcd update check"),
        (["update", "hist"], "bcd update history"),
        (["update", "--", "chek"], "bcd update check"),
        (["--version"], "bcd version"),
        (["--update"], "bcd update"),
        (["update", "--jsn"], "bcd update --json"),
        (["update", "--conf", "x"], "bcd update --config"),
        (["update", "--clear", "1.4.1"], "bcd update --clear-failed"),
        (["update", "check", "--uri", "x"], "bcd update check --url"),
        (["update", "history", "--jason"], "bcd update history --json"),
        (["version", "--jso"], "bcd version --json"),
        (["relase"], "bcd release"),
        (["release", "sgin"], "bcd release sign"),
        (["release", "sign", "--sequnce", "3"], "bcd release sign --sequence"),
        (["release", "verify", "--pin", "x"], "bcd release verify --pins"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_unknown_word_suggests_the_nearest(words: list[str], suggested: str, call: Call) -> None:
    done = call(*words)
    assert (done.status, done.stdout) == (2, "")
    assert done.code in ("unknown-command", "bad-usage")
    assert done.hint == f"did you mean `{suggested}`?"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["update", "--zzzzzzzz"], "bcd update"),
        (["update", "--config"], "bcd update"),
        (["update", "--config", ""], "bcd update"),
        (["update", "--config="], "bcd update"),
        (["update", "--color", "pink"], "bcd update"),
        (["update", "--color="], "bcd update"),
        (["update", "--json=yes"], "bcd update"),
        (["update", "--clear-failed=1.4.1"], "bcd update"),
        (["update", "check"], "bcd update check"),
        (["update", "check", "a", "b"], "bcd update check"),
        (["update", "history", "-n", "0"], "bcd update history"),
        (["update", "history", "-n", "many"], "bcd update history"),
        (["update", "history", "-n"], "bcd update history"),
        (["version", "extra"], "bcd version"),
        (["version", "--config", "x"], "bcd version"),
        (["version", "--color=always"], "bcd version"),
        (["completion"], "bcd completion"),
        (["completion", "tcsh"], "bcd completion"),
        (["node", "--log-level", "loud"], "bcd node"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_use_names_the_command_whose_help_to_read(words: list[str], where: str, call: Call) -> None:
    done = call(*words)
    assert (done.status, done.code, done.stdout) == (2, "bad-usage", "")
    assert done.hint == f"`{where} --help` shows what it takes"


@pytest.mark.parametrize(
    "words",
    [
        ["up\x1b[31mdate"],
        ["--\x1b]52;c;QQ==\x07"],
        ["update", "\x9b2J\u202e"],
        ["update", "--col\x1bor"],
        ["update", "--color", "\x1b[31mred"],
        ["update", "check", "/\x1b[2J\r/x"],
        ["update", "--config", "/\x1b[2J\r/x"],
        ["completion", "\x1b[2J"],
        ["x" * 10_000],
    ],
    ids=ascii,
)
def test_what_was_typed_reaches_no_terminal_raw(words: list[str], call: Call) -> None:
    done = call(*words)
    assert acting_on_a_terminal(done.stdout + done.stderr) == []
    assert len(done.stderr) < 500


def test_bcd_alone_shows_its_help_to_people_and_ends_with_2(run: Runner) -> None:
    """stdout is for data."""
    done = run()
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == run("--help").stdout


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_help_reads_at_80_columns(
    path: tuple[str, ...], command: click.Command, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wider, is filled up with blanks, or is cut with an ellipsis; it is plain where there is no terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    done = call(*path, "--help")
    assert (done.status, done.stderr) == (0, "")
    assert done == call(*path, "-h")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Usage: {' '.join(('bcd', *path))} ")
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip() or "…" in line] == []
    assert acting_on_a_terminal(done.stdout) == []
    for option in (o for param in command.params if isinstance(param, click.Option) for o in param.opts):
        assert re.search(rf"^ +(-\w +)?{option}\b", done.stdout, re.MULTILINE), option


@pytest.mark.parametrize("columns", ["1", "20", "0", "-5", "wide"])
def test_a_narrow_terminal_cuts_no_word_of_the_help(columns: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn 60 wide at least; the terminal wraps what is wider."""
    monkeypatch.setenv("COLUMNS", columns)
    narrow = call("update", "--help")
    monkeypatch.setenv("COLUMNS", "300")
    wide = call("update", "--help")
    assert (narrow.status, narrow.stderr, "…" in narrow.stdout) == (0, "", False)
    assert narrow.stdout.split() == wide.stdout.split()
    assert max(map(len, wide.stdout.splitlines())) <= 100


def test_the_examples_of_update_stand_one_below_the_other(call: Call) -> None:
    lines = call("update", "--help").stdout.splitlines()
    at = lines.index("Examples:")
    examples = lines[at + 1 : lines.index("", at)]
    assert len(examples) == 6
    assert all(line.startswith("  bcd update") for line in examples)
    assert len({re.split(r" {2,}", line[2:])[0] for line in examples}) == 6
    assert len({len(line) - len(re.split(r" {4,}", line)[-1]) for line in examples}) == 1


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_every_example_in_a_help_is_a_command_that_there_is(path: tuple[str, ...], command: click.Command) -> None:
    """Its words parse; none of it runs."""
    for line in inspect.cleandoc(command.help or "").splitlines():
        if re.match(r" +(.*\| )?bcd ", line) is None:
            continue
        words = re.split(r" {3,}| > ", line.rpartition("bcd ")[2])[0].split()
        context = root.make_context("bcd", list(words), resilient_parsing=True)
        name, inner, rest = root.resolve_command(context, words)
        assert inner is not None, line
        while isinstance(inner, click.Group) and rest and not rest[0].startswith("-"):
            _, inner, rest = inner.resolve_command(click.Context(inner, info_name=name), rest)
        assert inner is not None, line
        known = {option for param in inner.params for option in param.opts}
        assert {word for word in rest if word.startswith("--")} <= known, line


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_the_exit_statuses_in_a_help_are_the_enums(path: tuple[str, ...], command: click.Command, call: Call) -> None:
    """Each has a meaning, once, in order; 0 is among them, and a number means the same thing everywhere."""
    text = call(*path, "--help").stdout
    if "Exit status:\n" not in text:
        return
    rows = re.findall(r"^ +(\d+)  (\S.*)$", text.partition("Exit status:\n")[2], re.MULTILINE)
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(ExitStatus)
    assert ExitStatus.OK in numbers
    assert command.epilog is not None
    assert len(rows) == command.epilog.count("; ") + 1


RELEASES = [("release", name) for name in ("keygen", "sign", "verify", "inspect")]


@pytest.mark.parametrize("path", [("update",), ("update", "check"), ("update", "history"), *RELEASES], ids=" ".join)
def test_the_exit_statuses_that_these_tests_see_are_in_the_help(path: tuple[str, ...], call: Call) -> None:
    text = call(*path, "--help").stdout.partition("Exit status:\n")[2]
    listed = {int(number) for number in re.findall(r"^ +(\d+)  ", text, re.MULTILINE)}
    assert listed >= {0, 1, 2, 4, 70, 130}
    assert (5 in listed) == (path == ("update",))


PLAIN = [
    [],
    ["--json"],
    ["--json", "--json"],
    ["--config", "F"],
    ["--config=F"],
    ["--config", "F", "--json"],
    ["--config=other", "--config", "F"],
    ["--color", "never", "--config", "F"],
    ["--color=always", "--config=F"],
    ["--color", "never", "--color", "always", "--config=F"],
    ["--config", "--json"],
]


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_the_plain_spellings_mean_to_the_fast_path_what_they_mean_to_click(
    words: list[str], node: Node, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast path takes them, and either way says the same."""
    arguments = ["update", *(word.replace("F", str(node.config)) for word in words)]
    assert cli._plain_options(arguments[1:], cli._PLAIN["update"]) is not None
    fast = call(*arguments)
    monkeypatch.setattr(cli, "_PLAIN", {})
    assert call(*arguments) == fast
    assert fast.status == 0


PLAIN_DOCTOR = [
    ["--json"],
    ["--format", "plain"],
    ["--format=junit", "--strict"],
    ["--format", "prometheus", "--json"],
    ["--offline", "-v"],
    ["--verbose", "--color=always", "--format", "rich"],
]


@pytest.mark.parametrize("words", PLAIN_DOCTOR, ids=" ".join)
def test_the_plain_spellings_of_the_doctor_mean_the_same_to_click(
    words: list[str], node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reaches the work with the very same arguments by either way."""
    asked: list[tuple[object, ...]] = []

    def examine(config_path: str, checks: object, **options: object) -> ExitStatus:
        asked.append((config_path, checks, options))
        return ExitStatus.WARNINGS

    monkeypatch.setattr("bcd.commands.doctor.examine", examine)
    arguments = ["doctor", *words, "--config", str(node.config)]
    assert cli._plain_options(arguments[1:], cli._PLAIN["doctor"]) is not None
    assert cli.main(arguments) == ExitStatus.WARNINGS
    monkeypatch.setattr(cli, "_PLAIN", {})
    assert cli.main(arguments) == ExitStatus.WARNINGS
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("update", ["--json=1"]),
        ("update", ["--offline"]),
        ("doctor", ["--format", "yaml"]),
        ("doctor", ["--only", "slots.*"]),
        ("doctor", ["--watch"]),
        ("doctor", ["--wait", "5s"]),
        ("doctor", ["bundle"]),
        ("doctor", ["-vv"]),
        ("update", ["--color"]),
        ("update", ["--color", "pink"]),
        ("update", ["--config"]),
        ("update", ["--config="]),
        ("update", ["--help"]),
        ("update", ["check"]),
        ("update", ["--clear-failed"]),
        ("update", [""]),
        ("version", ["--config", "x"]),
        ("version", ["--color", "never"]),
        ("version", ["x"]),
    ],
    ids=str,
)
def test_what_is_not_plain_is_left_to_click(command: str, words: list[str]) -> None:
    assert cli._plain_options(words, cli._PLAIN[command]) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--config", "F", "--json"], ["history"]),
        (["--json"], ["history", "--config", "F"]),
        (["--config", "other", "--json"], ["history", "--config", "F"]),
    ],
    ids=str,
)
def test_an_option_before_the_commands_name_is_not_lost(
    before: list[str], after: list[str], node: Node, call: Call
) -> None:
    """`bcd update --config F history` must not answer from /etc."""
    node.write_history({"at": 1_790_000_000, "event": "swapped"})
    done = call("update", *(word.replace("F", str(node.config)) for word in [*before, *after]))
    assert (done.status, done.stderr) == (0, "")
    assert '"event": "swapped"' in done.stdout
