"""The frames of spec/gateway.md: what is sent, what is understood, and what is passed over."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.core.text import Foreign, clean
from bcd.node.frames import (
    Ack,
    Bye,
    Command,
    CommandStatus,
    Hello,
    Incoming,
    MalformedFrame,
    Outgoing,
    Section,
    SectionStatus,
    Welcome,
    decode,
    encode,
)
from bcd.node.protocol import FRAME_LIMIT_BYTES

SECTION = {"type": "section", "name": "daemon", "generation": 7, "spec": {"version": "1.4.1"}}

SENT: dict[str, tuple[Outgoing, dict[str, Any]]] = {
    "hello": (
        Hello(protocol=1, node_id="n1", role="node", version="1.4.0", platform="linux-amd64", sections=[]),
        {
            "type": "hello",
            "protocol": 1,
            "node_id": "n1",
            "role": "node",
            "version": "1.4.0",
            "platform": "linux-amd64",
            "sections": [],
        },
    ),
    "section-ready": (
        SectionStatus(name="daemon", observed_generation=7, state="READY"),
        {"type": "section_status", "name": "daemon", "observed_generation": 7, "state": "READY"},
    ),
    "section-failed": (
        SectionStatus(
            name="daemon",
            observed_generation=7,
            state="FAILED",
            reason="UpdateFailed",
            code="expired",
            message="it expired",
        ),
        {
            "type": "section_status",
            "name": "daemon",
            "observed_generation": 7,
            "state": "FAILED",
            "reason": "UpdateFailed",
            "code": "expired",
            "message": "it expired",
        },
    ),
    "command": (
        CommandStatus(id="c1", state="FAILED", reason="update-failed", code="no-pins", message="no pins"),
        {
            "type": "command_status",
            "id": "c1",
            "state": "FAILED",
            "reason": "update-failed",
            "code": "no-pins",
            "message": "no pins",
        },
    ),
    "bye": (Bye(reason="it ends"), {"type": "bye", "reason": "it ends"}),
}

UNDERSTOOD: dict[str, tuple[dict[str, Any], Incoming]] = {
    "welcome": (
        {"type": "welcome", "session_id": "s", "server_time": 1_700_000_000},
        Welcome(session_id="s", server_time=1_700_000_000),
    ),
    "section": (SECTION, Section(name="daemon", generation=7, spec={"version": "1.4.1"})),
    "command": (
        {"type": "command", "id": "c1", "kind": "daemon.upgrade", "args": {}},
        Command(id="c1", kind="daemon.upgrade", args={}),
    ),
    "ack": ({"type": "ack", "id": "c1"}, Ack(id="c1")),
    "bye": ({"type": "bye", "reason": "restarting"}, Bye(reason="restarting")),
    "bye-without-a-reason": ({"type": "bye"}, Bye()),
}

MALFORMED = {
    "empty": "",
    "no-json": "welcome",
    "torn": '{"type":"welcome","session_id":"s"',
    "two-values": '{"type":"bye"} {"type":"bye"}',
    "a-list": "[]",
    "a-text": '"welcome"',
    "null": "null",
    "not-utf-8": b'{"type":"bye","reason":"\xff"}',
    "nul-bytes": "\0" * 64,
    "a-field-missing": '{"type":"welcome","session_id":"s"}',
    "a-text-for-a-number": '{"type":"welcome","session_id":"s","server_time":"now"}',
    "a-fraction": '{"type":"welcome","session_id":"s","server_time":1.5}',
    "a-boolean-for-a-number": '{"type":"section","name":"daemon","generation":true,"spec":{}}',
    "before-1970": '{"type":"welcome","session_id":"s","server_time":-1}',
    "a-negative-generation": '{"type":"section","name":"daemon","generation":-1,"spec":{}}',
    "past-2^53": json.dumps({**SECTION, "generation": 2**53}),
    "5000-digits": '{"type":"section","name":"daemon","spec":{},"generation":' + "9" * 5000 + "}",
    "a-number-for-a-text": '{"type":"ack","id":1}',
    "no-spec": '{"type":"section","name":"daemon","generation":1}',
    "a-lone-surrogate": '{"type":"command","id":"\\ud800","kind":"daemon.upgrade","args":{}}',
    "a-lone-surrogate-deep-inside": '{"type":"section","name":"daemon","generation":1,"spec":[[{"\\udc00":1}]]}',
    "100000-deep": '{"type":"section","name":"daemon","generation":1,"spec":' + "[" * 100_000,
    "900-deep": '{"type":"section","name":"daemon","generation":1,"spec":' + "[" * 900 + "]" * 900 + "}",
}


@pytest.mark.parametrize(("frame", "document"), SENT.values(), ids=SENT)
def test_what_is_sent_has_exactly_the_fields_of_the_table(frame: Outgoing, document: dict[str, Any]) -> None:
    """A status leaves out what does not apply; nothing else is ever left out or added."""
    assert json.loads(encode(frame)) == document


@pytest.mark.parametrize(("document", "frame"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_each_frame_of_the_gateway_is_understood(document: dict[str, Any], frame: Incoming) -> None:
    """From text and from bytes alike."""
    text = json.dumps(document)
    assert decode(text) == decode(text.encode()) == frame


@pytest.mark.parametrize(("document", "frame"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_a_newer_gateways_fields_are_passed_over(document: dict[str, Any], frame: Incoming) -> None:
    """What is known of the frame is read all the same."""
    assert decode(json.dumps({**document, "since_v9": {"a": [None, 1.5]}, "priority": "high"})) == frame


@pytest.mark.parametrize(
    "text",
    ['{"type":"config","id":1}', '{"type":"hello"}', '{"type":null}', '{"type":["welcome"]}', '{"type":1}', "{}"],
)
def test_a_newer_gateways_frames_are_passed_over(text: str) -> None:
    """A type that is not known here is no error, whatever else the frame holds."""
    assert decode(text) is None


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_frame_is_told_apart(text: str | bytes) -> None:
    """It is never half understood, and it ends in no other error."""
    with pytest.raises(MalformedFrame):
        decode(text)


def test_what_is_said_of_a_malformed_frame_cannot_write_a_terminal() -> None:
    """The sentence is printable and short, whatever the frame held."""
    hostile = {"type": "welcome", "session_id": "\x1b[2J\u202e" + "x" * 100_000, "server_time": "\x1b]52;c;BEL\x07"}
    with pytest.raises(MalformedFrame) as caught:
        decode(json.dumps(hostile))
    said = str(caught.value)
    assert said == clean(said)
    assert len(said) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries(
    {"type": st.sampled_from(["welcome", "section", "command", "ack", "bye", "hello", ""])},
    optional=dict.fromkeys(
        ("session_id", "server_time", "name", "generation", "spec", "id", "kind", "args", "reason"), JSON
    ),
).map(json.dumps)


@given(text=st.text() | st.binary() | JSON.map(json.dumps) | NEARLY)
def test_any_text_is_a_frame_or_nothing_or_malformed(text: str | bytes) -> None:
    """No input ends in another error, and what was understood can be answered."""
    try:
        frame = decode(text)
    except MalformedFrame:
        return
    assert frame is None or isinstance(frame, Welcome | Section | Command | Ack | Bye)
    # The fields that come back in an answer are those that a session would otherwise break on.
    if isinstance(frame, Section):
        encode(SectionStatus(name=frame.name, observed_generation=frame.generation, state="UNSUPPORTED"))
    if isinstance(frame, Command):
        encode(CommandStatus(id=frame.id, state="ACCEPTED", message=frame.kind))


def test_a_frame_of_the_whole_4_mib_is_understood() -> None:
    """The limit is the session's; a frame just below it, nearly all of it one text, is read."""
    empty = len(json.dumps({**SECTION, "spec": ""}))
    text = json.dumps({**SECTION, "spec": "x" * (FRAME_LIMIT_BYTES - empty)})
    assert len(text) == FRAME_LIMIT_BYTES == 4 * 1024 * 1024
    frame = decode(text)
    assert isinstance(frame, Section)
    assert frame.spec == "x" * (FRAME_LIMIT_BYTES - empty)


def test_a_section_may_be_nested_as_deep_as_a_manifest() -> None:
    """Depth 60 is read; the bound is far above anything that has a meaning."""
    deep: Any = {}
    for _ in range(58):
        deep = {"a": deep}
    frame = decode(json.dumps({**SECTION, "spec": deep}))
    assert isinstance(frame, Section)
    assert frame.spec == deep


def test_what_a_helper_said_can_be_told_to_the_gateway() -> None:
    """A refusal's texts come over the helper's socket as foreign text; a frame of them must not end the agent."""
    code, message = Foreign("failed-version"), Foreign("it failed here\x1b[2J")
    frame = CommandStatus(id="c1", state="FAILED", reason="update-failed", code=code, message=message)
    sent = json.loads(encode(frame))
    assert (sent["code"], sent["message"]) == ("failed-version", "it failed here\\x1b[2J")


def test_what_is_no_text_is_never_told_as_text() -> None:
    with pytest.raises(NotImplementedError):
        encode(CommandStatus(id="c1", state="FAILED", message=object()))  # type: ignore[arg-type]
