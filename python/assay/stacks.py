"""The stack of a thread, noted in little time and read later."""
from __future__ import annotations

import sys
from typing import Any

#: (code, place in it, the module's names).
Frame = tuple[Any, int, dict[str, Any]]
#: The code's file, line, function, module.
Place = tuple[str, int, str, str]


def frames() -> list[Frame]:
    """The calling frames, innermost first: what costs least to ask."""
    found = []
    frame: Any = sys._getframe(1)
    while frame is not None and len(found) < 60:
        found.append((frame.f_code, frame.f_lasti, frame.f_globals))
        frame = frame.f_back
    return found


def places(stack: list[Frame]) -> list[Place]:
    return [(code.co_filename, _line(code, at), code.co_name, names.get("__name__", "")) for code, at, names in stack]


def _line(code: Any, at: int) -> int:
    for begin, end, line in code.co_lines():
        if begin <= at < end and line is not None:
            return int(line)
    return int(code.co_firstlineno)
