"""JSON and base64 as a signed document may carry them: one spelling a value, and no error but `ValueError`.

The attack: a document that two readers read differently, or that ends the reader. So duplicate keys, numbers that
are not plain digits, `NaN`, lone surrogates and trailing bytes are errors (spec/self-update.md section 3).
"""

import json
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from itertools import chain

MAX_INTEGER = 2**53 - 1
DEPTH_LIMIT = 64
_DIGITS = len(str(MAX_INTEGER))


def decode_base64(text: str) -> bytes:
    """Decode strict standard base64: padding required, and encoding again gives the same text.

    Raises:
        ValueError: it is not.
    """
    try:
        data = a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeEncodeError) as error:
        raise ValueError("not base64") from error
    if b2a_base64(data, newline=False).decode() != text:
        raise ValueError("not base64 as it is written")
    return data


def parse_json(data: bytes) -> object:
    """Parse one JSON value of dicts, lists, strings, integers, booleans and None.

    Raises:
        ValueError: with a few words on what is wrong.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_not_an_integer,
            parse_constant=_not_an_integer,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON at character {error.pos}") from error
    except RecursionError as error:
        # Too deep for the parser itself, which is far past the limit below.
        raise ValueError("nested too deep") from error
    check_tree(value)
    return value


def check_tree(value: object, *, values_limit: int | None = None) -> None:
    """Refuse what can be parsed and not be handed on: a depth past 64, lone surrogates, more values than `values_limit`.

    The attack: whoever encodes such a value again, or walks it by recursion, ends in an error of another kind, or late.

    Raises:
        ValueError: with a few words on what is wrong.
    """
    level, values = [value], 1
    for _ in range(DEPTH_LIMIT):
        if values_limit is not None:
            values += sum(len(item) for item in level if isinstance(item, dict | list))
            if values > values_limit:
                raise ValueError(f"more than {values_limit} values")
        level = [inner for item in level for inner in _inside(item)]
    # What is left stands inside 64 containers; a container here would be one more, empty or not.
    for item in level:
        if isinstance(item, dict | list):
            raise ValueError(f"nested deeper than {DEPTH_LIMIT}")
        _inside(item)


def _inside(item: object) -> Iterable[object]:
    if isinstance(item, str) and not item.isascii():
        try:
            item.encode()
        except UnicodeEncodeError as error:
            raise ValueError("a lone surrogate") from error
    if isinstance(item, dict):
        return chain(item.keys(), item.values())
    return item if isinstance(item, list) else ()


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return made


def _integer(digits: str) -> int:
    # A minus is no digit; leading zeros are refused by the grammar; int() of 5,000 digits is an attack on time.
    if not digits.isdigit() or len(digits) > _DIGITS:
        raise ValueError("a number is not an integer from 0 to 2^53-1")
    return int(digits)


def _not_an_integer(_text: str) -> object:
    raise ValueError("a number is not an integer written with digits alone")
