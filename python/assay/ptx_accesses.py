"""What a kernel reads and writes through each of its parameters, from its PTX."""

from __future__ import annotations

import re
from functools import lru_cache

_INSTRUCTION = re.compile(r"(?:^|(?<=;))\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+([^;]*);", re.M)
_REGISTER = re.compile(r"%\w+")
_MEMORY = re.compile(r"\[\s*(%?\w+)[^\]]*\]")


@lru_cache(maxsize=1024)
def uses(text: bytes, entry: str) -> tuple[frozenset, frozenset] | None:
    """(parameters read through, parameters written through) of an entry; None where an address comes from memory or a call, so that
    nothing is known."""
    source = text.decode("utf-8", "replace")
    rows = _rows(source, entry)
    if rows is None or any(name.startswith("call") for name, _ in rows):
        return None
    of, loaded = _roots(rows)
    reads, writes = set(), set()
    for name, bases, ways in _accesses(rows):
        for base in bases:
            if base in loaded and not of.get(base):
                return None
            reads |= of.get(base, set()) if "r" in ways else set()
            writes |= of.get(base, set()) if "w" in ways else set()
    return frozenset(reads), frozenset(writes)


@lru_cache(maxsize=1024)
def element_types(text: bytes, entry: str) -> dict[str, frozenset]:
    """Types of what an entry loads and stores through each parameter: "f32", "b16", ..., as its instructions end."""
    rows = _rows(text.decode("utf-8", "replace"), entry) or ()
    of, _ = _roots(rows)
    found: dict[str, set] = {}
    for name, bases, _ in _accesses(rows):
        for base in bases:
            for parameter in of.get(base, ()):
                found.setdefault(parameter, set()).add(name.rsplit(".", 1)[-1])
    return {parameter: frozenset(types) for parameter, types in found.items()}


def _rows(source, entry):
    """[(instruction, operands)] of its body; None where there is none."""
    begin = re.search(rf"\.entry\s+{re.escape(entry)}\b", source)
    if begin is None:
        return None
    body = source[begin.end() :]
    end = re.search(r"^}", body, re.M)
    return [(m.group(1), m.group(2)) for m in _INSTRUCTION.finditer(body[: end.start()] if end else body)]


def _roots(rows):
    """(parameters that each register's address follows from, registers that come from memory): through whatever computes with them, in
    any order of execution."""
    of: dict[str, set] = {}
    loaded: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, operands in rows:
            if name.startswith(("ld.param", "mov")) or _computes(name):
                into, sources = _into(operands)
                roots = set().union(*(of.get(register, ()) for register in sources)) if sources else set()
                if name.startswith("ld.param"):
                    roots = set(_MEMORY.findall(operands))
                for register in into:
                    if not roots <= of.setdefault(register, set()):
                        of[register] |= roots
                        changed = True
                    if loaded.intersection(sources) and register not in loaded:
                        loaded.add(register)
                        changed = True
            elif name.startswith(("ld.global.b64", "ld.global.u64", "ld.b64", "ld.u64")) or ".b64" in name and name.startswith("ld.global"):
                fresh = set(_into(operands)[0]) - loaded
                loaded |= fresh
                changed |= bool(fresh)
    return of, loaded


def _accesses(rows):
    """(instruction, its addresses' registers, "r", "w" or both)."""
    for name, operands in rows:
        ways = _ways(name)
        if ways:
            bases = _MEMORY.findall(operands)
            yield name, bases[1:] if "async" in name and name.startswith("cp") and len(bases) > 1 and ways == "r" else bases[:1], ways


def _computes(name):
    return not name.startswith(("ld", "st", "red", "atom", "cp.", "bar", "mma", "wgmma", "bra", "setp", "prefetch", "fence", "membar"))


def _into(operands):
    registers = operands.split(",", 1)
    if operands.lstrip().startswith("{"):
        registers = operands.split("}", 1)
    rest = registers[1] if len(registers) > 1 else ""
    return _REGISTER.findall(registers[0]), _REGISTER.findall(rest)


def _ways(name):
    """"r", "w" or both, of the memory of tensors that the instruction names; "" for none."""
    if name.startswith(("st.global", "st.b", "st.v", "red.global", "red.b", "red.a", "red.r")) or re.match(r"st\.(relaxed|release|volatile|wt|cs|cg)", name):
        return "rw" if name.startswith("red") else "w"
    if name.startswith("atom") and ".shared" not in name:
        return "rw"
    if name.startswith("ld") and not name.startswith(("ld.param", "ld.shared", "ld.local", "ld.const", "ldmatrix")):
        return "r"
    if name.startswith("cp.async.bulk"):
        return "w" if ".global.shared" in name else "r"
    return "r" if name.startswith("cp.async") and ".global" in name else ""
