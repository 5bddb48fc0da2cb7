"""What arithmetic a program has, from its text: what `assay.fuzz` may be told, each number with the line that it is from."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

from . import program_arithmetic
from .errors import BadInput
from .machine import Launching, Module, watchers

_INSTRUCTION = re.compile(rb"^\s*(?:@!?%\w+\s+)?((?:mma\.sync|wgmma\.mma_async|cvt\.r|ex2\.approx|div\.full|div\.rn|rcp\.approx|shfl\.sync)[\w.:]*)", re.M)
_LOCATION = re.compile(rb"^\s*\.loc\s+(\d+)\s+(\d+)", re.M)
_FILE = re.compile(rb'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)
_NARROW = {"bf16": "bf16", "bf16x2": "bf16", "f16": "fp16", "f16x2": "fp16", "tf32": "tf32", "e4m3x2": "e4m3", "e5m2x2": "e5m2"}

#: What is found: a field of `assay list arithmetic` that it belongs to, and in words.
_KINDS = {
    "product": ("readout, write, removal", "products of matrices of {0}, summed in {1}"),
    "rounding": ("readout, write: u for each on an operand's way", "rounded to {0}"),
    "exponential": ("decay, or write_decayed and readout_decayed: 2^-22", "an exponential, 2 ulp"),
    "quotient": ("divide: 2^-22", "an approximate quotient"),
    "scan": ("prefix_per_nat, chunk", "a sum over tokens, by shuffles between lanes: decays are differences of such sums"),
}


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

    def __str__(self) -> str:
        lines = [f"arithmetic={self.arithmetic!r}  {self.why}" if self.arithmetic is not None else f"no preset is known to fit: {self.why}"]
        for row in self.evidence:
            lines.append(f"  {row.line or row.kernel}: {row.of} ({row.count} {row.instruction}): {row.field}")
        if self.looser:
            lines.append(f"declared too loosely: {self.looser}")
        return "\n".join(lines)


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
    found = program_arithmetic.of_modules(op, modules) if op else {}
    why = found.get("why") or ("say which operator it computes" if op is None else f"{op} has none for these launches")
    proposal = Proposal(found.get("arithmetic"), why, list(dict.fromkeys(row for module in modules for row in evidence(module))))
    if declared is not None:
        proposal.looser = _looser(declared, proposal.evidence)
    return proposal


def evidence(module: Module) -> list[Evidence]:
    """Where the text rounds, by line."""
    text = module.text
    files = {number: name.decode(errors="replace").rsplit("/", 1)[-1] for number, name in _FILE.findall(text)}
    kernel = next(iter(module.entries), module.path)
    places = list(_LOCATION.finditer(text))
    counts: dict[tuple[str, str, str, str], int] = {}
    at = -1
    for match in _INSTRUCTION.finditer(text):
        while at + 1 < len(places) and places[at + 1].start() < match.start():
            at += 1
        line = f"{files.get(places[at].group(1), '?')}:{places[at].group(2).decode()}" if at >= 0 else ""
        instruction = match.group(1).decode()
        kind, words = _kind(instruction)
        if kind:
            key = (line, instruction, _KINDS[kind][1].format(*words), _KINDS[kind][0])
            counts[key] = counts.get(key, 0) + 1
    return [Evidence(kernel, line, instruction, count, of, name) for (line, instruction, of, name), count in counts.items()]


def _kind(instruction: str) -> tuple[str, list[str]]:
    parts = instruction.split(".")
    if parts[0] in ("mma", "wgmma"):
        formats = [part for part in parts if part in ("bf16", "f16", "tf32", "f32", "e4m3", "e5m2", "s8", "u8", "s32", "f64")]
        return ("product", [formats[1], formats[0]]) if len(formats) > 1 else ("", [])
    if parts[0] == "cvt":
        into = next((_NARROW[part] for part in parts if part in _NARROW), "")
        return ("rounding", [into]) if into and parts[-1] in ("f32", "f16", "bf16") and parts[-1] not in (into, into[:2]) else ("", [])
    if parts[0] == "shfl":
        return ("scan", []) if "up" in parts else ("", [])
    return ("exponential", []) if parts[0] == "ex2" else ("quotient", [])


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


def _looser(declared: Any, found: Iterable[Evidence]) -> str:
    """Why it is far looser than the program, from what is declared and never happens."""
    name = declared if isinstance(declared, str) else declared.get("preset", "")
    kinds = {row.of.split()[0] for row in found}
    if name.startswith("triton-") and "products" not in kinds:
        return f"{name} covers operands of matrix products cut to 10 bits of fraction, and no launch multiplies matrices"
    numbers = {key: value for key, value in declared.items() if key != "preset"} if isinstance(declared, Mapping) else {}
    if "divide" in numbers and "an" not in {row.of.split()[0] for row in found if "quotient" in row.of}:
        return "divide is declared, and nothing divides"
    if "prefix_per_nat" in numbers and not any("shuffles" in row.of for row in found):
        return "prefix_per_nat is declared, and no sums over tokens are made by shuffles"
    return ""
