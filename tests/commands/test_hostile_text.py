"""Text from outside that would act on a terminal, at every place where `bcd` prints: it is shown, and does nothing.

The attack (field reports C05, C06): whoever can make a release fail, name a version or answer as a gateway has text
written on an operator's terminal, and so to the clipboard, over other lines, or into what looks like a prompt.
"""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.commands.logs import CleanFormatter, JournalFormatter, TalkFormatter, log_to_stderr, service_formatter
from tests.commands.node_dir import Node, failed, slot_entry
from tests.commands.running import Done, Runner, acting_on_a_terminal, without_colour
from tests.commands.test_live_state import DOWNLOADING, agent, says

Call = Callable[..., Done]

TRICKS = {
    "clear screen": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "title": "\x1b]0;root@host\x07",
    "C1": "\x9b2J\x9d52;c;QQ==\x9c",
    "NUL": "a\0b",
    "overwrite": "\rversion 9.9.9",
    "backspace": "bad\b\b\bgood",
    "new lines": "\nfailed: none\n\x0b\x0c\x85\u2028\u2029",
    "bidi": "\u202egnp.exe\u202c\u2066\u2069\u200f",
    "hidden": "\u200b\u200d\ufeff\U000e0041",
    "surrogate": "\ud800",
    "delete": "\x7f",
}
LONG = "x" * 10_000
MARKUP = "[/foo] [b a [1] [link=https://evil.example]x[/link]"
ALL = "".join(TRICKS.values()) + MARKUP


def in_a_reason(node: Node, text: str) -> None:
    node.write_update([failed("1.4.1", text)])


def in_a_failed_version(node: Node, text: str) -> None:
    node.write_update([failed(text)])


def in_a_slots_version(node: Node, text: str) -> None:
    node.write_slots({"a": slot_entry(text, 13), "b": slot_entry(text, 14)})


def in_a_pending_version(node: Node, text: str) -> None:
    node.write_pending(to_version=text, from_version=text, refused=text, command_id=text)


def in_the_links(node: Node, text: str) -> None:
    (node.slots / "current").unlink()
    (node.slots / "current").symlink_to(text.encode("utf-8", "surrogatepass").replace(b"\0", b""))


def in_the_path_of_a_record(node: Node, text: str) -> None:
    hostile = node.home / text.replace("/", "").replace("\0", "").encode("ascii", "ignore").decode()[:60]
    node.data.rename(hostile)
    node.data, node.records = hostile, hostile / "update"
    node.configure()
    node.update_json.write_text("{")


STATE_SINKS = [
    in_a_reason,
    in_a_failed_version,
    in_a_slots_version,
    in_a_pending_version,
    in_the_links,
    in_the_path_of_a_record,
]


def shown(done: Done) -> str:
    """All that a command said, which no terminal acts on."""
    said = done.stdout + done.stderr
    assert acting_on_a_terminal(without_colour(said)) == [], ascii(said)
    return said


@pytest.mark.parametrize("place", STATE_SINKS, ids=lambda place: place.__name__)
@pytest.mark.parametrize(
    "words",
    [("update",), ("update", "--color", "always"), ("update", "--json"), ("update", "--clear-failed")],
    ids=" ".join,
)
def test_what_the_records_hold_reaches_no_terminal(
    words: tuple[str, ...], place: Callable[[Node, str], None], call: Call, node: Node
) -> None:
    place(node, ALL)
    assert shown(call(*words, "--config", str(node.config)))


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_each_trick_is_one_line_and_visible(trick: str, call: Call, node: Node) -> None:
    """As escapes, between what stands around it."""
    node.write_update([failed("1.4.1", f"<{trick}>")])
    done = call("update", "--config", str(node.config))
    assert len(done.stdout.splitlines()) == 3
    line = done.stdout.splitlines()[2]
    assert line.startswith("failed: 1.4.1 (<")
    assert line.endswith(">)")
    assert line.isascii()
    assert "\\x" in line or "\\u" in line or "\\U" in line


def test_brackets_are_no_markup(call: Call, node: Node) -> None:
    node.write_update([failed("1.4.1-[x]", MARKUP)])
    for words in (("update",), ("update", "--color", "always"), ("update", "--clear-failed")):
        assert f"1.4.1-[x] ({MARKUP})" in without_colour(call(*words, "--config", str(node.config)).stdout)


@pytest.mark.parametrize("words", [("update",), ("update", "history"), ("update", "--clear-failed")], ids=" ".join)
def test_a_long_text_does_not_scroll_the_rest_away(words: tuple[str, ...], call: Call, node: Node) -> None:
    node.write_update([failed("1.4.1", LONG)])
    node.write_history({"at": 1, "event": "settled-failed", "version": LONG[:30], "reason": LONG})
    done = call(*words, "--config", str(node.config))
    assert LONG[:100] in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 2_100


def test_the_history_shows_every_field_clean(call: Call, node: Node) -> None:
    node.write_history(
        {"at": 1, "event": ALL, "version": ALL, "slot": ALL, "way": ALL, "code": ALL, "reason": ALL, "sequence": 1},
        {"at": ALL, "event": [ALL], "versions": [ALL, {ALL: ALL}], "sequence": True},
    )
    done = call("update", "history", "--config", str(node.config))
    assert len(done.stdout.splitlines()) == 2
    assert "\\x1b[2J" in shown(done)


def test_json_keeps_the_value_and_escapes_it(call: Call, node: Node) -> None:
    event = {"at": 1, "event": "refused", "reason": ALL + LONG, "deep": {"a": [ALL]}}
    node.write_history(event)
    node.write_update([failed("1.4.1", ALL + LONG)])
    state = call("update", "--json", "--config", str(node.config)).stdout
    history = call("update", "history", "--json", "--config", str(node.config)).stdout
    assert (state.isascii(), history.isascii()) == (True, True)
    assert json.loads(state)["failed"][0]["reason"] == ALL + LONG
    assert json.loads(history)["events"] == [event]


def test_a_check_shows_reasons_and_links_clean(call: Call, node: Node) -> None:
    """The failed version's reason, a URL, a digest, and where the entrypoint leads to."""
    argument = ALL.replace("\0", "")
    words = ("update", "check", "/dev/null", "--config", str(node.config))
    for options in (("--url", argument), ("--sha256", argument), ("--url", argument, "--json")):
        shown(call(*words, *options))
    done = call("update", "check", argument, "--config", str(node.config))
    assert (done.status, done.code, shown(done) != "") == (2, "unreadable-manifest", True)


def test_a_manifests_key_ids_are_shown_clean(call: Call, node: Node) -> None:
    from tests.commands.test_check import keys, signed

    node.pin(keys())
    envelope = json.loads(signed())
    envelope["signatures"] = [{"kid": ALL, "sig": ALL}, *envelope["signatures"]]
    path = node.home / "release.json"
    path.write_text(json.dumps(envelope).replace(r"\ud800", ""))
    done = call("update", "check", str(path), "--config", str(node.config))
    assert "\\x1b[2J" in shown(done)


def test_where_the_entrypoint_leads_to_is_shown_clean(call: Call, node: Node) -> None:
    from tests.commands.test_check import keys, signed

    node.pin(keys())
    node.entrypoint.unlink()
    node.entrypoint.symlink_to("/opt/\x1b[2J\x9b1m\u202e")
    path = node.home / "release.json"
    path.write_text(signed())
    for options in ((), ("--json",)):
        done = call("update", "check", str(path), *options, "--config", str(node.config))
        assert done.status == 1
        assert "unsafe-entrypoint" in shown(done)


def test_an_agents_every_field_is_shown_clean(call: Call, node: Node) -> None:
    state = {**DOWNLOADING, "target": ALL, "error": ALL, "session": {"state": ALL, "error": ALL}, ALL: ALL}
    with agent(node, says(state)):
        assert "\\x1b[2J" in shown(call("update", "--config", str(node.config)))
        assert json.loads(shown(call("update", "--json", "--config", str(node.config))))["agent"] == state


@pytest.mark.parametrize(
    "text", [f"[node]\n{json.dumps(ALL)} = 1\n", f"[node]\ndata_dir = {json.dumps(ALL)}\n", f"{ALL} = 1\n"], ids=ascii
)
def test_a_configurations_keys_and_values_are_shown_clean(text: str, call: Call, node: Node) -> None:
    node.config.write_bytes(text.replace(r"\ud800", "").encode("utf-8", "ignore"))
    done = call("update", "--config", str(node.config))
    assert (done.status, done.code) == (2, "bad-config")
    shown(done)


def test_a_real_terminal_gets_nothing_but_our_own_colours(run: Runner, node: Node) -> None:
    in_a_reason(node, ALL)
    node.write_history({"at": 1, "event": "refused", "reason": ALL})
    for words in (("update",), ("update", "history"), ("update", "--clear-failed")):
        done = run.on_terminal(*words, "--config", str(node.config))
        assert done.status == 0
        assert "\\x1b]52;c;" in shown(done)


@pytest.mark.parametrize(
    "name", ["bcd.node.session", "websockets.client", "asyncio", "urllib3.connectionpool", "py.warnings"]
)
@pytest.mark.parametrize("formatter", [CleanFormatter, JournalFormatter, TalkFormatter])
def test_a_log_line_is_one_line_and_acts_on_nothing(
    formatter: type[logging.Formatter], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of whatever library it is, and with an exception whose text is from outside."""
    text = ALL.replace("\ud800", "")  # pytest-xdist can't pass what it captures on, else
    log_to_stderr(formatter())
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger(name).exception("the gateway said %s", text)
    said = capsys.readouterr().err
    assert acting_on_a_terminal(said) == []
    assert (said.count("\n"), "the gateway said \\x1b[2J" in said) == (1, True)


def test_an_agents_log_line_has_time_level_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(CleanFormatter(), "INFO")
    record = logging.LogRecord("bcd.node", logging.WARNING, "", 0, "it said %s", ("\x1b",), None)
    record.created = 1_790_000_000.5
    logging.getLogger("bcd.node").handle(record)
    logging.getLogger("bcd.node").debug("not this")
    assert capsys.readouterr().err == "2026-09-21T14:13:20Z WARNING bcd.node: it said \\x1b\n"


def test_the_journal_gets_levels_and_no_second_time(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(JournalFormatter(), "DEBUG")
    log = logging.getLogger("bcd.node")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        log.log(level, "it said %s", "\x1b\n<0>")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"<{number}>bcd.node: it said \\x1b\\x0a<0>" for number in (7, 6, 4, 3, 3)]


@pytest.mark.parametrize(("offset", "form"), [(0, JournalFormatter), (1, CleanFormatter)])
def test_only_a_stderr_that_is_the_journal_is_written_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, form: type[logging.Formatter]
) -> None:
    """A child, or a shell behind `2>file`, inherits the variable all the same."""
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino + offset}")
        assert type(service_formatter()) is form


def test_a_log_that_can_not_be_written_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(CleanFormatter())
    logging.getLogger("bcd").warning("%d", "no number")
    assert "Traceback" not in capsys.readouterr().err
