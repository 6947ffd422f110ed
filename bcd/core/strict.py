"""JSON and base64 as a signed document may carry them: one spelling a value, and no error but `ValueError`.

The attack: a document that two readers read differently, or that ends the reader. So duplicate keys, numbers that
are not plain digits, `NaN`, lone surrogates and trailing bytes are errors (spec/self-update.md section 3).
"""

import json
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64

MAX_INTEGER = 2**53 - 1
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
        # No value that the rules accept nests past 4, so a depth past 64 is refused for its fields already;
        # only what is too deep for the parser itself arrives here.
        raise ValueError("nested too deep") from error
    if "\\u" in text:
        _refuse_surrogates(value)
    return value


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


def _refuse_surrogates(value: object) -> None:
    # Only an escape can make one: UTF-8 has none. Iterative, since the parser may allow deeper than we may recurse.
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and not item.isascii():
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError("a lone surrogate") from error
