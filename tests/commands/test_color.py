"""When output is coloured, on a real terminal and off one; and that colour only adds to what the words say."""

from collections.abc import Callable

import pytest

from tests.commands.node_dir import Node, failed
from tests.commands.running import Done, Runner, acting_on_a_terminal, without_colour

Call = Callable[..., Done]

ON_A_TERMINAL = [
    ({}, [], True),
    ({"NO_COLOR": "1"}, [], False),
    ({"NO_COLOR": "0"}, [], False),
    ({"NO_COLOR": ""}, [], True),
    ({"FORCE_COLOR": "1"}, [], True),
    ({"FORCE_COLOR": "0"}, [], False),
    ({"FORCE_COLOR": ""}, [], True),
    ({"TERM": "dumb"}, [], False),
    ({"TERM": "dumb", "FORCE_COLOR": "1"}, [], True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, [], False),
    ({}, ["--color", "never"], False),
    ({}, ["--color=auto"], True),
    ({"NO_COLOR": "1"}, ["--color", "auto"], False),
    ({"NO_COLOR": "1"}, ["--color", "always"], True),
    ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
    ({"TERM": "dumb"}, ["--color=always"], True),
]
OFF_A_TERMINAL = [
    ({}, [], False),
    ({"NO_COLOR": ""}, [], False),
    ({"FORCE_COLOR": ""}, [], False),
    ({"FORCE_COLOR": "0"}, [], False),
    ({"FORCE_COLOR": "1"}, [], True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, [], False),
    ({}, ["--color", "always"], True),
    ({"NO_COLOR": "1"}, ["--color=always"], True),
    ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
]


def ids(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value) if isinstance(value, list) else ""


@pytest.mark.parametrize(("env", "options", "coloured"), ON_A_TERMINAL, ids=ids)
def test_the_state_on_a_terminal(
    env: dict[str, str], options: list[str], coloured: bool, run: Runner, call: Call, node: Node
) -> None:
    done = run.on_terminal("update", *options, "--config", str(node.config), env=env)
    assert (done.status, done.stderr, "\x1b[" in done.stdout) == (0, "", coloured)
    assert without_colour(done.stdout) == call("update", "--config", str(node.config)).stdout


@pytest.mark.parametrize(("env", "options", "coloured"), OFF_A_TERMINAL, ids=ids)
def test_the_state_off_a_terminal(
    env: dict[str, str], options: list[str], coloured: bool, run: Runner, call: Call, node: Node
) -> None:
    done = run("update", *options, "--config", str(node.config), env=env)
    assert (done.status, done.stderr, "\x1b[" in done.stdout) == (0, "", coloured)
    assert without_colour(done.stdout) == call("update", "--config", str(node.config)).stdout


@pytest.mark.parametrize(
    ("env", "options", "coloured"),
    [
        ({}, [], True),
        ({"NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": ""}, [], True),
        ({"FORCE_COLOR": "0"}, [], False),
        ({"TERM": "dumb"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({}, ["--color=never"], False),
    ],
    ids=ids,
)
@pytest.mark.parametrize("command", [["update", "--help"], ["update", "check", "/dev/null"]], ids=" ".join)
def test_help_and_checks_decide_as_the_state_does(
    command: list[str],
    env: dict[str, str],
    options: list[str],
    coloured: bool,
    run: Runner,
    call: Call,
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rich's own reading of NO_COLOR and FORCE_COLOR is another one, and does not count."""
    words = [command[0], *command[1:], *options, "--config", str(node.config)]
    done = run.on_terminal(*words, env={**env, "COLUMNS": "80"})
    assert ("\x1b[" in done.stdout, done.stderr) == (coloured, "")
    monkeypatch.setenv("COLUMNS", "80")
    plain = call(*command, "--config", str(node.config))
    assert (done.status, without_colour(done.stdout)) == (plain.status, plain.stdout)


def test_help_off_a_terminal_is_coloured_by_force_alone(run: Runner) -> None:
    forced = run("--help", env={"FORCE_COLOR": "1"}).stdout
    plain = run("--help").stdout
    assert ("\x1b[" in forced, "\x1b[" in plain) == (True, False)
    assert without_colour(forced) == plain


def test_help_to_people_is_not_coloured_for_the_other_stream(run: Runner) -> None:
    """`bcd` alone writes to stderr, whatever stdout is."""
    done = run.on_terminal()
    assert (done.status, done.stdout, "\x1b[" in done.stderr) == (2, "", False)


def test_errors_are_never_coloured(run: Runner) -> None:
    assert "\x1b[" not in run("updat", env={"FORCE_COLOR": "1"}).stderr


def test_json_is_never_coloured(run: Runner, node: Node) -> None:
    done = run.on_terminal("update", "--json", "--color", "always", "--config", str(node.config))
    assert acting_on_a_terminal(done.stdout) == []


def test_each_line_is_closed_before_it_ends(run: Runner, node: Node) -> None:
    """A line that grep picks out leaves no colour behind."""
    node.write_pending()
    node.update_json.write_text("{")
    done = run("update", "--color", "always", "--config", str(node.config))
    for line in done.stdout.splitlines():
        assert line.count("\x1b[0m") == line.count("\x1b[") / 2 == 1, line
        assert line.rindex("\x1b[0m") > line.rindex("m", 0, line.rindex("\x1b[0m"))


def test_colour_frames_a_reason_that_forges_colour(run: Runner, node: Node) -> None:
    node.write_update([failed("1.4.1", "\x1b[32mall well\x1b[0m")])
    done = run("update", "--color", "always", "--config", str(node.config))
    assert r"(\x1b[32mall well\x1b[0m)" in done.stdout
    assert acting_on_a_terminal(without_colour(done.stdout)) == []


@pytest.mark.parametrize("theme", ["nord-nu", '{"theme": 5, "x": 1}', "no-such-theme"])
def test_anothers_theme_in_the_environment_changes_nothing(
    theme: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RICH_CLICK_THEME is for programs that have no help of their own design."""
    plain = call("--help")
    monkeypatch.setenv("RICH_CLICK_THEME", theme)
    assert call("--help") == plain
