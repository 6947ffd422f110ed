"""The helper starts only where nobody but root chooses what it starts; what it says is mended by the command that it gives."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.config import Config, parse_config
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.layout import layout_of
from bcd.helper.guard import find_node_user, require_root, require_safe_places
from tests.core.disk import unchanged
from tests.helper.world import OTHER_UID, TREE, UID, World


def places(root: Path, **changes: str) -> Config:
    """A good node in `root`, and its configuration with some places changed."""
    for name in ("lib/bcd", "bin", "run", "etc", "data"):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(0o755)
    os.chown(root / "data", UID, UID)
    for name in ("lib/bcd/bcd-a", "lib/bcd/slots.json", "bin/bcd"):
        (root / name).write_bytes(b"{}")
        (root / name).chmod(0o755)
    os.symlink("bcd-a", root / "lib/bcd/current")
    values = {
        "data_dir": f"{root}/data",
        "slots_dir": f"{root}/lib/bcd",
        "entrypoint": f"{root}/bin/bcd",
        "socket": f"{root}/run/helper.sock",
        **{name: value.format(root=root) for name, value in changes.items()},
    }
    text = (
        '[node]\ndata_dir = "{data_dir}"\n[update]\nslots_dir = "{slots_dir}"\nentrypoint = "{entrypoint}"\n'
        '[helper]\nnode_user = "nobody"\nsocket = "{socket}"\n'
    ).format(**values)
    path = root / "etc" / "config.toml"
    path.write_text(text)
    path.chmod(0o644)
    return parse_config(text.encode(), str(path))


def refused(config: Config) -> UsageError:
    """Why it does not start."""
    with pytest.raises(UsageError) as caught:
        require_safe_places(config, layout_of(config))
    assert caught.value.code == "unsafe-place"
    return caught.value


def link(root: Path, name: str, target: str, uid: int = 0) -> None:
    """A link, somebody's."""
    os.symlink(target.format(root=root), root / name)
    os.chown(root / name, uid, uid, follow_symlinks=False)


def theirs(root: Path, name: str) -> None:
    """A directory of the node's."""
    (root / name).mkdir()
    os.chown(root / name, UID, UID)


def for_all(root: Path, name: str) -> None:
    """A directory that all may write."""
    (root / name).mkdir()
    (root / name).chmod(0o777)


def in_turn(*steps: Callable[[Path], object]) -> Callable[[Path], None]:
    """Several things that lie there."""

    def prepare(root: Path) -> None:
        for step in steps:
            step(root)

    return prepare


def test_a_good_node_may_start(roots: Path) -> None:
    """Also where some of it is still to be made."""
    config = places(roots)
    require_safe_places(config, layout_of(config))
    new = places(roots / "new", slots_dir="{root}/lib/more/bcd")
    require_safe_places(new, layout_of(new))


# Inside data_dir -------------------------------------------------------------------------------------------------------

INSIDE: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "slots in data_dir": (lambda _: None, {"slots_dir": "{root}/data/slots"}),
    "slots that are data_dir": (lambda _: None, {"slots_dir": "{root}/data"}),
    "slots by ..": (lambda _: None, {"slots_dir": "{root}/lib/../data/slots"}),
    "slots by a link": (lambda r: link(r, "way", "{root}/data"), {"slots_dir": "{root}/way/slots"}),
    "slots that are a link": (lambda r: link(r, "way", "{root}/data/slots"), {"slots_dir": "{root}/way"}),
    "slots by a data_dir that is a link": (lambda r: link(r, "d", "{root}/lib"), {"data_dir": "{root}/d"}),
    "slots by a data_dir above all": (lambda _: None, {"data_dir": "/"}),
    "slots by a chain of links": (
        in_turn(lambda r: link(r, "one", "two"), lambda r: link(r, "two", "{root}/data")),
        {"slots_dir": "{root}/one/x/y"},
    ),
    "entrypoint in data_dir": (lambda _: None, {"entrypoint": "{root}/data/bcd"}),
    "entrypoint by ..": (lambda _: None, {"entrypoint": "{root}/bin/../data/bcd"}),
    "entrypoint by a link": (lambda r: link(r, "way", "data"), {"entrypoint": "{root}/way/bcd"}),
    "entrypoint that is a link": (lambda r: link(r, "bin/way", "../data/bcd"), {"entrypoint": "{root}/bin/way"}),
}


@pytest.mark.parametrize("name", INSIDE)
def test_nothing_that_root_starts_lies_in_the_nodes_data_dir(roots: Path, name: str) -> None:
    """The key, the place and the configuration to change are named."""
    prepare, changes = INSIDE[name]
    config = places(roots, **changes)
    prepare(roots)
    with unchanged(roots):
        error = refused(config)
    assert "lies inside data_dir" in error.message
    key = "slots_dir" if name.startswith("slots") else "entrypoint"
    assert f"[update] {key}" in error.message
    assert config.path in error.hint


# The way ---------------------------------------------------------------------------------------------------------------

OPEN: dict[str, tuple[str, int, int]] = {
    "the slots": ("lib/bcd", UID, 0o755),
    "above the slots": ("lib", UID, 0o755),
    "the slots, for a group": ("lib/bcd", 0, 0o775),
    "the slots, for all": ("lib/bcd", 0, 0o757),
    "above the slots, sticky": ("lib", 0, 0o1777),
    "a directory set-gid": ("lib", 0, 0o2775),
    "the entrypoint's": ("bin", UID, 0o755),
    "the socket's": ("run", UID, 0o755),
    "the socket's, for a group": ("run", 0, 0o770),
    "the configuration's": ("etc", OTHER_UID, 0o755),
    "the configuration": ("etc/config.toml", UID, 0o644),
    "the configuration, for a group": ("etc/config.toml", 0, 0o664),
    "a slot": ("lib/bcd/bcd-a", UID, 0o755),
    "a slot, for all": ("lib/bcd/bcd-a", 0, 0o777),
    "a record": ("lib/bcd/slots.json", OTHER_UID, 0o600),
    "all of it": (".", UID, 0o755),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_step_that_is_not_roots_alone_is_named_and_mended_by_its_command(roots: Path, name: str) -> None:
    """The very path; the command, run, is all that was missing. The bytes stay what they are."""
    place, uid, mode = OPEN[name]
    config = places(roots)
    step = roots / place
    os.chown(step, uid, uid)
    step.chmod(mode)
    with unchanged(roots):
        error = refused(config)
    path = os.path.normpath(step)
    assert error.message.startswith(f"{path}, on the way to ")
    before = step.read_bytes() if step.is_file() else b""
    subprocess.run(["sh", "-euc", error.hint], check=True, cwd="/")
    require_safe_places(config, layout_of(config))
    assert not step.is_file() or step.read_bytes() == before


@pytest.mark.parametrize("name", ["lib/bcd/bcd-a", "etc/config.toml"])
def test_who_held_a_file_open_for_writing_holds_another_after_it_was_mended(roots: Path, name: str) -> None:
    """Owner and mode take no descriptor away."""
    config = places(roots)
    path = roots / name
    os.chown(path, UID, UID)
    good = path.read_bytes()
    with path.open("r+b") as held:
        subprocess.run(["sh", "-euc", refused(config).hint], check=True)
        held.write(b"evil")
    assert path.read_bytes() == good
    assert path.stat().st_uid == 0


LINKS: dict[str, tuple[Callable[[Path], object], dict[str, str], str]] = {
    "a link of the node's": (lambda r: link(r, "way", "lib", UID), {"slots_dir": "{root}/way/bcd"}, "way"),
    "a link of root's into the node's": (
        in_turn(lambda r: theirs(r, "theirs"), lambda r: link(r, "way", "theirs")),
        {"slots_dir": "{root}/way/bcd"},
        "theirs",
    ),
    "a chain, its middle the node's": (
        in_turn(
            lambda r: link(r, "one", "two"),
            lambda r: link(r, "two", "three", UID),
            lambda r: link(r, "three", "lib"),
        ),
        {"slots_dir": "{root}/one/bcd"},
        "two",
    ),
    "a link beneath a directory for all": (
        in_turn(
            lambda r: for_all(r, "all"),
            lambda r: link(r, "all/way", "../lib"),
            lambda r: link(r, "w", "all/way"),
        ),
        {"slots_dir": "{root}/w/bcd"},
        "all",
    ),
    "a link in the slots": (lambda r: link(r, "lib/bcd/previous", "bcd-a", UID), {}, "lib/bcd/previous"),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_are_resolved_one_by_one(roots: Path, name: str) -> None:
    """Each is looked at, and each directory that it lies in."""
    prepare, changes, where = LINKS[name]
    config = places(roots, **changes)
    prepare(roots)
    error = refused(config)
    assert error.message.startswith(f"{roots / where}, on the way to ")
    subprocess.run(["sh", "-euc", error.hint], check=True)
    require_safe_places(config, layout_of(config))


def test_links_without_end_and_files_on_the_way_are_told(roots: Path) -> None:
    """As what they are."""
    config = places(roots, slots_dir="{root}/loop/bcd")
    link(roots, "loop", "loop")
    assert "symbolic links" in refused(config).message
    config = places(roots / "again", slots_dir="{root}/bin/bcd/slots")
    assert "can't be looked at" in refused(config).message


def test_a_relative_configuration_is_looked_at_where_it_is(roots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its way begins at the working directory, not at the root."""
    config = places(roots)
    monkeypatch.chdir(roots)
    here = config._replace(path="etc/config.toml")
    require_safe_places(here, layout_of(here))
    os.chown(roots / "etc", UID, UID)
    assert str(roots / "etc") in refused(here).message


# Who --------------------------------------------------------------------------------------------------------------------


def named(user: str) -> Config:
    return parse_config(f'[helper]\nnode_user = "{user}"\n'.encode(), "/etc/bcd/config.toml")


@pytest.mark.parametrize(
    "user", ["root", "0", "-1", "4294967295", "99999999999999999999", "no-such-user", "../root", "٣"]
)
def test_a_user_that_is_none_or_root_is_no_nodes(user: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_node_user(named(user))
    assert caught.value.code == "bad-config"


def test_a_number_needs_no_entry() -> None:
    """As in a container; a name has its own group."""
    assert find_node_user(named(str(UID)))[1:] == (UID, UID)
    assert find_node_user(named("nobody")).name == "nobody"


def test_the_helper_is_roots_and_wants_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    with pytest.raises(NotPermitted) as caught:
        require_root(named("nobody"))
    assert caught.value.code == "needs-root"
    with pytest.raises(UsageError) as other:
        require_root(parse_config(b"", "/etc/bcd/config.toml"))
    assert other.value.code == "no-helper"


def run(world: World, *, uid: int | None = None) -> "subprocess.CompletedProcess[str]":
    """The command itself, to its end."""
    words = [sys.executable, "-c", "from bcd.cli import entry; entry()", "helper", "--config", world.config_path]
    return subprocess.run(
        words,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        user=uid,
        timeout=20,
    )


def test_the_command_ends_with_the_directory_and_the_mend(world: World) -> None:
    """Nothing was made, and nothing listens."""
    os.chown(world.slots, UID, UID)
    before = world.tree()
    ran = run(world)
    assert ran.returncode == 2
    assert f"chown root:root {world.slots} && chmod go-w {world.slots}" in ran.stderr
    assert "unsafe-place" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert world.tree() == before
    assert not os.path.exists(world.socket)


def test_a_second_helper_is_turned_away(world: World) -> None:
    """The first goes on."""
    world.start()
    ran = run(world)
    assert (ran.returncode, "helper-running" in ran.stderr) == (1, True), ran.stderr
    world.serves()
    assert world.stop() == 0
    assert not os.path.exists(world.socket)
