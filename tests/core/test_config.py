"""The configuration: defaults, each key's type and bounds, and for every mistake the key and the file."""

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.config import Config, HelperConfig, NodeConfig, UpdateConfig, is_pin, load_config, parse_config
from bcd.core.errors import NotPermitted, UsageError
from tests.core.disk import unchanged
from tests.core.public import as_nobody, public_directory

PATH = "/etc/bcd/config.toml"
PIN_A, PIN_B, PIN_C = ("sha256/" + b64encode(letter * 32).decode() for letter in (b"a", b"b", b"\xff"))
DEFAULTS = Config(PATH, True, NodeConfig(), UpdateConfig(), None)


def parse(text: str) -> Config:
    """Read a file of this text."""
    return parse_config(text.encode(), PATH)


def bad(data: str | bytes) -> UsageError:
    """The file is refused, and says that it is this file."""
    with pytest.raises(UsageError) as caught:
        parse_config(data.encode() if isinstance(data, str) else data, PATH)
    error = caught.value
    assert error.code == "bad-config"
    assert error.message.startswith(f"{PATH}: ")
    assert error.message.isprintable()
    assert error.hint
    return error


# What is in force -----------------------------------------------------------------------------------------------------


def test_defaults_are_what_the_rules_say() -> None:
    """Section 5's paths, a threshold of two, no pins: a node that takes no release."""
    assert NodeConfig() == ("/var/lib/bcd", None, None, None, None, None, False)
    assert UpdateConfig() == ((), 2, 0, "/usr/local/lib/bcd", "/usr/local/bin/bcd", None)
    assert HelperConfig() == ("bcd", "/run/bcd/helper.sock")


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "[node]\n", "[update]\n[node]", "[other]\nx = 1\n"])
def test_an_empty_file_means_defaults(text: str) -> None:
    """Empty tables and other parts' tables too."""
    assert parse(text) == DEFAULTS


def test_each_key_is_read() -> None:
    """Into its place and no other."""
    config = parse(f"""
        [node]
        data_dir = "/data"
        gateway = "wss://gateway.example.com/v1/node"
        node_id = "n1"
        ca_file = "/ca"
        cert_file = "/cert"
        key_file = "/key"
        dev_insecure_h2c = true
        [update]
        release_pins = "{PIN_A}"
        release_threshold = 1
        release_sequence = 14
        slots_dir = "/slots"
        entrypoint = "/bin/bcd"
        ca_file = "/ca2"
        [helper]
        node_user = "agent"
        socket = "/sock"
    """)
    assert config.found
    assert config.node == ("/data", "wss://gateway.example.com/v1/node", "n1", "/ca", "/cert", "/key", True)
    assert config.update == ((PIN_A,), 1, 14, "/slots", "/bin/bcd", "/ca2")
    assert config.helper == ("agent", "/sock")


def test_the_helpers_table_alone_says_that_there_is_one() -> None:
    """Empty, it has defaults; absent, the node is on its own."""
    assert parse("[helper]\n").helper == HelperConfig()
    assert parse("[node]\n").helper is None


def test_comments_and_order_are_no_matter() -> None:
    """Nor is white space, nor how a table is written."""
    plain = parse(f'[node]\ndata_dir = "/d"\n[update]\nrelease_threshold = 1\nrelease_pins = "{PIN_A}"\n')
    other = parse(
        f'# c\nupdate = {{ release_pins = ["{PIN_A}"], release_threshold = 1 }} # d\nnode.data_dir = "/d" #e\n'
    )
    assert plain == other


@pytest.mark.parametrize(
    "text", ["[bcd]\nrelease_pin = 1\n", "[[list]]\nx = 1\n", "top = 1\n", "[node-2]\ndata_dir = 1\n"]
)
def test_other_parts_tables_are_passed_over(text: str) -> None:
    """Whatever they hold."""
    assert parse(text) == DEFAULTS


def test_paths_are_in_one_spelling() -> None:
    """What is compared later is compared as one."""
    config = parse('[update]\nslots_dir = "/usr/local//lib/./bcd/"\nentrypoint = "/usr/local/lib/../bin/bcd"\n')
    assert (config.update.slots_dir, config.update.entrypoint) == ("/usr/local/lib/bcd", "/usr/local/bin/bcd")


# Pins -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "pins"),
    [
        (f'"{PIN_A}"', [PIN_A]),
        (f'"{PIN_A},{PIN_B}"', [PIN_A, PIN_B]),
        (f'" {PIN_B} ,\t{PIN_A}, "', [PIN_B, PIN_A]),
        (f'"""\n{PIN_A},\n{PIN_B},\n"""', [PIN_A, PIN_B]),
        (f'["{PIN_A}", "{PIN_B}", "{PIN_C}"]', [PIN_A, PIN_B, PIN_C]),
        (f'["{PIN_A}", "{PIN_B}", "{PIN_A}"]', [PIN_A, PIN_B]),
        (f'"{PIN_A},{PIN_A}"', [PIN_A]),
        ('""', []),
        ("[]", []),
    ],
    ids=["one", "two", "spaces", "lines", "list", "list twice", "text twice", "empty", "empty list"],
)
def test_pins_are_a_text_or_a_list(value: str, pins: list[str]) -> None:
    """In their order, each once: a pin configured twice is one signer (field report 30)."""
    assert parse(f"[update]\nrelease_pins = {value}\n").update.release_pins == tuple(pins)


MALFORMED_PINS = {
    "no prefix": PIN_A.removeprefix("sha256/"),
    "prefix alone": "sha256/",
    "other digest": PIN_A.replace("sha256", "sha512"),
    "upper case": PIN_A.replace("sha256", "SHA256"),
    "colon": PIN_A.replace("/", ":", 1),
    "hex": "sha256/" + "ab" * 32,
    "31 bytes": "sha256/" + b64encode(b"a" * 31).decode(),
    "33 bytes": "sha256/" + b64encode(b"a" * 33).decode(),
    "no padding": PIN_A.rstrip("="),
    "stray bits": PIN_A[:-2] + "F=",
    "URL alphabet": PIN_C.replace("/", "_").replace("sha256_", "sha256/"),
    "space inside": PIN_A[:20] + " " + PIN_A[20:],
    "two in one": PIN_A + PIN_B,
    "semicolon": f"{PIN_A};{PIN_B}",
    "control": PIN_A + "\\u001b[2J",
    "placeholder": "sha256/<...>",
}


@pytest.mark.parametrize("pin", MALFORMED_PINS.values(), ids=MALFORMED_PINS)
def test_a_malformed_pin_is_an_error(pin: str) -> None:
    """Beside good ones, in a text and in a list: a pin that pins nothing would be a door left open."""
    for value in (f'"{pin}"', f'"{PIN_B},{pin}"', f'["{PIN_B}", "{pin}"]'):
        assert "release_pins has " in bad(f"[update]\nrelease_pins = {value}\n").message
    assert not is_pin(pin)


def test_an_empty_pin_in_a_list_is_an_error() -> None:
    """In a text it is a comma too many; in a list somebody meant a pin."""
    assert "''" in bad(f'[update]\nrelease_pins = ["{PIN_A}", ""]\n').message


@pytest.mark.parametrize("value", ["1", "true", "{}", '{ a = "b" }', "1.5", "1979-05-27"])
def test_pins_of_another_type_are_an_error(value: str) -> None:
    """Alone and inside a list."""
    assert "release_pins" in bad(f"[update]\nrelease_pins = {value}\n").message
    assert "release_pins" in bad(f"[update]\nrelease_pins = [{value}]\n").message


@given(
    st.text(max_size=60) | st.binary(min_size=32, max_size=32).map(lambda data: "sha256/" + b64encode(data).decode())
)
def test_a_pin_is_one_spelling_of_32_bytes(text: str) -> None:
    """Whatever passes is what encoding gives again."""
    if is_pin(text):
        prefix, _, rest = text.partition("/")
        assert prefix == "sha256"
        assert len(rest) == 44


# Types and bounds -----------------------------------------------------------------------------------------------------

TEXTS = [("node", "gateway"), ("node", "node_id"), ("helper", "node_user")]
PATHS = [
    *[("node", name) for name in ("data_dir", "ca_file", "cert_file", "key_file")],
    *[("update", name) for name in ("slots_dir", "entrypoint", "ca_file")],
    ("helper", "socket"),
]
INTEGERS = [("update", "release_threshold"), ("update", "release_sequence")]


def key_error(table: str, key: str, value: str) -> None:
    """The value is refused, and table and key are named."""
    assert f"[{table}] {key} " in bad(f"[{table}]\n{key} = {value}\n").message


@pytest.mark.parametrize(("table", "key"), [*TEXTS, *PATHS])
def test_a_text_of_another_type_is_an_error(table: str, key: str) -> None:
    """Empty and NUL included."""
    for value in ("1", "true", "[]", '["/x"]', "{}", "1.5", "1979-05-27", '""', '"/a\\u0000b"'):
        key_error(table, key, value)


@pytest.mark.parametrize(("table", "key"), PATHS)
def test_a_path_that_is_not_absolute_is_an_error(table: str, key: str) -> None:
    """A service has no directory of its own to be relative to."""
    for value in ("x", "./x", "../x", "~/x", " /x"):
        key_error(table, key, f'"{value}"')


@pytest.mark.parametrize(("table", "key"), INTEGERS)
def test_an_integer_of_another_type_or_size_is_an_error(table: str, key: str) -> None:
    """true is no 1."""
    for value in ("true", "false", "1.0", '"2"', "[]", "[2]", "-1", "9007199254740992", "inf", "nan"):
        key_error(table, key, value)


def test_a_threshold_of_zero_is_an_error() -> None:
    """It would let an unsigned release in; a floor of zero is none."""
    key_error("update", "release_threshold", "0")
    assert parse("[update]\nrelease_threshold = 1\nrelease_sequence = 0\n").update.release_threshold == 1
    assert parse("[update]\nrelease_sequence = 9007199254740991\n").update.release_sequence == 2**53 - 1


@pytest.mark.parametrize("value", ["1", "0", '"true"', "[]", '"yes"'])
def test_clear_text_is_only_let_through_by_true(value: str) -> None:
    """Nothing else means it."""
    key_error("node", "dev_insecure_h2c", value)


@pytest.mark.parametrize("table", ["node", "update", "helper"])
@pytest.mark.parametrize("value", ["1", '"x"', "[]", "true", "[{}]"])
def test_a_table_that_is_none_is_an_error(table: str, value: str) -> None:
    """`helper = true` turns nothing on by accident."""
    assert f"{table} is no table" in bad(f"{table} = {value}\n").message


@pytest.mark.parametrize(
    ("table", "key", "near"),
    [
        ("update", "release_pin", "release_pins"),
        ("update", "pins", "release_pins"),
        ("update", "threshold", "release_threshold"),
        ("update", "Release_pins", "release_pins"),
        ("update", "release-pins", "release_pins"),
        ("update", "slot_dir", "slots_dir"),
        ("node", "gatway", "gateway"),
        ("node", "datadir", "data_dir"),
        ("node", "dev_insecure", "dev_insecure_h2c"),
        ("helper", "user", "node_user"),
        ("helper", "sock", "socket"),
    ],
)
def test_an_unknown_key_names_the_nearest(table: str, key: str, near: str) -> None:
    """What somebody meant and did not get."""
    error = bad(f'[{table}]\n{key} = "x"\n')
    assert f"[{table}] has no key '{key}'" in error.message
    assert f"'{near}'" in error.hint


@pytest.mark.parametrize("table", ["node", "update", "helper"])
@pytest.mark.parametrize(
    "key", ['""', "x", "9", '"\\u001b[2J"', '"\\u0440elease_pins"', "release_pins.x", "data_dir.x"]
)
def test_any_unknown_key_is_an_error(table: str, key: str) -> None:
    """However far from any known one, and whatever it would do to a terminal."""
    error = bad(f"[{table}]\n{key} = 1\n")
    assert error.hint.isprintable()


def test_a_key_of_another_table_is_an_error() -> None:
    """`slots_dir` under [node] would otherwise be the default."""
    assert "[node] has no key 'slots_dir'" in bad('[node]\nslots_dir = "/x"\n').message


# The file -------------------------------------------------------------------------------------------------------------

BROKEN: dict[str, tuple[bytes, str]] = {
    "not UTF-8": (b'[node]\ngateway = "\xff"\n', "not UTF-8"),
    "UTF-16": ("[node]\n".encode("utf-16"), "not UTF-8"),
    "surrogate": (b"[node]\nx = '\xed\xa0\x80'\n", "not UTF-8"),
    "no TOML": (b"[node\n", "no TOML"),
    "JSON": (b'{"node": {}}', "no TOML"),
    "YAML": (b"node:\n  gateway: x\n", "no TOML"),
    "NUL": (b"\0" * 100, "no TOML"),
    "half": (b'[node]\ngateway = "wss://', "no TOML"),
    "escape in the text": (b"[node]\nx = \x1b]52;c;eA==\x07\n", "no TOML"),
    "table twice": (b"[update]\n[update]\n", "no TOML"),
    "key twice": (b"[node]\ndata_dir = '/a'\ndata_dir = '/b'\n", "no TOML"),
    "nested deep": (b"x = " + b"[" * 100_000, "nested"),
    "nested deep in a table": (b"[node]\ngateway = " + b"[" * 100_000 + b"]" * 100_000, "nested"),
    "nested tables": (b"x = " + b"{a=" * 100_000, "nested"),
    "integer of 5000 digits": (b"[update]\nrelease_sequence = " + b"1" * 5000, "no TOML"),
    "integer of 5000 digits elsewhere": (b"[other]\nx = " + b"1" * 5000, "no TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_an_error_that_says_so(data: bytes, words: str) -> None:
    """And never a traceback, nor defaults."""
    assert words in bad(data).message


@given(st.binary(max_size=80) | st.text('[]node.update=helper"/{}\n#1\\ ', max_size=60).map(str.encode))
@settings(max_examples=150)
def test_no_bytes_end_in_another_error(data: bytes) -> None:
    """They are a configuration or a `bad-config`."""
    code = None
    try:
        parse_config(data, PATH)
    except UsageError as error:
        code = error.code
    assert code in {None, "bad-config"}


def test_a_missing_file_means_defaults(tmp_path: Path) -> None:
    """Also where its directory is missing, or is a file; and none is made."""
    (tmp_path / "file").touch()
    with unchanged(tmp_path):
        for name in ("config.toml", "missing/config.toml", "file/config.toml"):
            path = str(tmp_path / name)
            assert load_config(path) == Config(path, False, NodeConfig(), UpdateConfig(), None)


def test_a_file_is_read(tmp_path: Path) -> None:
    """From where it is said to be, through a link as well; and it is left as it is."""
    (tmp_path / "real.toml").write_text("[update]\nrelease_sequence = 14\n")
    (tmp_path / "config.toml").symlink_to("real.toml")
    path = str(tmp_path / "config.toml")
    with unchanged(tmp_path):
        config = load_config(path)
    assert (config.path, config.found, config.update.release_sequence) == (path, True, 14)


def test_a_file_that_this_user_may_not_read_is_not_taken_for_missing() -> None:
    """Field report 38: "permission denied" is no fresh install."""
    with public_directory() as directory:
        path = directory / "config.toml"
        path.write_text("[update]\nrelease_sequence = 14\n")
        path.chmod(0o000)
        with as_nobody(), pytest.raises(NotPermitted) as caught:
            load_config(str(path))
    assert caught.value.code == "unreadable-config"
    assert str(path) in caught.value.message
    assert "root" in caught.value.hint


@pytest.mark.parametrize(
    "plant", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)], ids=["dir", "fifo", "device"]
)
def test_what_is_no_file_in_its_place_is_an_error(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    """Something is there, so defaults would be a guess; and it hangs nobody."""
    path = tmp_path / "config.toml"
    plant(path)
    with pytest.raises(UsageError, match="no regular file") as caught:
        load_config(str(path))
    assert caught.value.code == "bad-config"


def test_a_file_larger_than_any_configuration_is_an_error(tmp_path: Path) -> None:
    """A log that was named by mistake is not read whole."""
    path = tmp_path / "config.toml"
    path.write_bytes(b"#" * 1_048_576)
    assert load_config(str(path)).found
    path.write_bytes(b"#" * 1_048_577)
    with pytest.raises(UsageError, match="larger than any configuration"):
        load_config(str(path))


def test_a_link_that_leads_nowhere_or_in_a_circle_is_told_apart(tmp_path: Path) -> None:
    """A dangling one is a missing file; a circle can't be read."""
    os.symlink("nowhere", tmp_path / "dangling")
    os.symlink("circle", tmp_path / "circle")
    assert not load_config(str(tmp_path / "dangling")).found
    with pytest.raises(UsageError, match="could not be read"):
        load_config(str(tmp_path / "circle"))
