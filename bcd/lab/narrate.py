"""What goes on between a node and its gateway, as lines for people."""

from collections.abc import Callable
from functools import partial

from bcd.core.text import clean
from bcd.lab.book import Frame, Json, Page
from bcd.lab.gateway import Gateway


def follow(gateway: Gateway, node: str, tell: Callable[[str], None]) -> None:
    """Tell each thing worth telling as it happens, for ever.

    Raises:
        LabClosed: the gateway was closed.
    """
    told = 0
    said = ""
    while True:
        gateway.wait(node, partial(_has_more, told), 3600.0)
        with gateway.page(node) as page:
            fresh = page.frames[told:]
            lines = [line for line in (_line(page, frame) for frame in fresh) if line]
        told += len(fresh)
        for line in lines:
            # A replayed section is reported anew after each welcome; once is enough for people.
            if line != said:
                tell(line)
            said = line


def _has_more(told: int, page: Page) -> bool:
    return len(page.frames) > told


def _line(page: Page, frame: Frame) -> str:
    body = frame.body
    version = page.sessions[frame.session].version
    match body.get("type"):
        case "hello":
            return f"{clean(version, 64)} comes to the gateway"
        case "welcome":
            return f"{clean(version, 64)} is welcomed"
        case "bye" if frame.from_node:
            return f"{clean(version, 64)} says goodbye: {clean(str(body.get('reason')), 200)}"
        case "bye":
            return f"the gateway refuses {clean(version, 64)}: {body.get('reason')}"
        case "section":
            return f"the section names {body['spec'].get('version')} (generation {body.get('generation')})"
        case "command":
            return f"a command asks for {body['args'].get('version')}"
        case "section_status":
            return f"the section is {_status(body)}"
        case "command_status":
            return f"the command is {_status(body)}"
        case _:
            return ""


def _status(body: Json) -> str:
    message = clean(str(body.get("message") or ""), 300)
    return clean(str(body.get("state")), 40) + (f": {message}" if message else "")
