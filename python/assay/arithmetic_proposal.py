"""What arithmetic a program has, from its text: what `assay.fuzz` may be told, each number with the line that it is from."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from . import program_arithmetic
from .errors import BadInput
from .machine import Launching, Module, watchers


@dataclass(frozen=True)
class Evidence:
    """`instruction` stands `count` times at `line` ("chunk_h.py:140") of `kernel`; what it is `of` and which `field` of a declared
    arithmetic has to cover it."""

    kernel: str
    line: str
    instruction: str
    count: int
    of: str
    field: str


@dataclass
class Proposal:
    """What may be declared: `arithmetic` as `assay.fuzz` takes it, None where no preset is known to fit; `why`; `evidence`; `looser`:
    why a declaration that was given is far looser than the program, or ""."""

    arithmetic: Any
    why: str
    evidence: list[Evidence] = field(default_factory=list)
    looser: str = ""
    #: As `assay arithmetic` prints it.
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.text


def arithmetic(
    program: str | os.PathLike[str] | Module | Callable[..., Any],
    op: str | None = None,
    *,
    declared: str | Mapping[str, Any] | None = None,
    **options: Any,
) -> Proposal:
    """The arithmetic that a program has, to be declared to `assay.fuzz`.

    Args:
        program: a function of yours, of which one case of `op` is run on the machine; a module, or the path of a .ptx file.
        op: the operator that it computes; of a module or file it chooses the preset.
        declared: what you would declare: said to be too loose where the program rounds less.
        options: of a function, as `assay.fuzz` takes them (names, layout, sizes, dtypes, ...).
    Returns:
        A `Proposal`; print() shows it, a line for each place.
    Raises:
        BadInput: a file that cannot be read, a function without an operator, or that launches nothing on the machine.
    """
    modules = _launched(program, op, options) if callable(program) else [_read(program)]
    made = program_arithmetic.proposed(modules, op, declared)
    rows = [Evidence(**row) for row in made["evidence"]]
    return Proposal(made["arithmetic"], made["why"], rows, made["looser"], made["text"])


def _read(program: Any) -> Module:
    if isinstance(program, Module):
        return program
    path = os.fspath(program)
    try:
        with open(path, "rb") as file:
            return Module(file.read(), path=path)
    except OSError as error:
        raise BadInput(f"arithmetic: {path}: {error.strerror}") from None


class _Modules:
    """A watcher that keeps what is launched."""

    def __init__(self) -> None:
        self.seen: list[Module] = []

    def before(self, launch: Launching) -> None:
        if launch.module not in self.seen:
            self.seen.append(launch.module)


def _launched(fn: Callable[..., Any], op: str | None, options: dict[str, Any]) -> list[Module]:
    from .fuzzing import fuzz

    if op is None:
        raise BadInput("arithmetic: which operator does the function compute? assay.arithmetic(fn, \"gla\")")
    modules = _Modules()
    watchers.append(modules)
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fuzz(op, fn, **{"cases": 1, "seed": 1, "shrink": 0, "backend": "machine", **options})
    finally:
        watchers.remove(modules)
    if not modules.seen:
        raise BadInput(f"arithmetic: {getattr(fn, '__name__', 'the function')} launched nothing on the machine")
    return modules.seen
