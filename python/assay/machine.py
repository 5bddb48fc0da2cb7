"""The machine: PTX run on the process's own memory, bit for bit as a GPU runs it.

    module = Module(ptx)
    x = numpy.arange(1000, dtype=numpy.float32)
    storage = Storage.of(x, "x")
    run(module, "scale", grid=(8, 1, 1), block=(128, 1, 1), storages=[storage],
        arguments=[x.ctypes.data.to_bytes(8, "little"), (1000).to_bytes(4, "little")])

A kernel reads and writes the storages that a launch names and nothing else of the process's memory.
"""
from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Iterable, Sequence

from . import _engine, _tensors
from ._engine import OverBudget
from ._tensors import FORMATS
from .errors import BadInput
from .results import ExponentRange, Trap, Verification

__all__ = ["FORMATS", "Entry", "Launched", "Module", "OverBudget", "Parameter", "Storage", "architectures", "checks", "run", "tensor_map"]

_ABOUT = _engine.about()
#: Architectures that can be asked for: "sm_80", "sm_89", "sm_90".
architectures: tuple[str, ...] = tuple(_ABOUT["architectures"])
#: Names of checks.
checks: tuple[str, ...] = tuple(_ABOUT["checks"])


@dataclass(frozen=True)
class Parameter:
    """One parameter of an entry: its place in the parameter block, in bytes."""

    name: str
    type: str
    """".u64", ".f32", ...; ".b8" for structs"""
    bytes: int
    offset: int
    alignment: int

    @property
    def is_pointer_sized(self) -> bool:
        """Whether it can hold an address: 64 bits that are no float."""
        return self.bytes == 8 and self.type in (".u64", ".s64", ".b64")


@dataclass(frozen=True)
class Entry:
    """A kernel of a module, as its signature and directives say."""

    name: str
    parameters: tuple[Parameter, ...]
    shared_bytes: int
    """of static shared memory"""
    required_block: tuple[int, int, int] | None
    max_threads: int
    """of a block, where .maxntid says so; else 0"""
    required_cluster: tuple[int, int, int] | None
    target: str
    """"sm_90a": what the PTX was made for"""
    refused: str
    """why its body cannot be run, or "" (not all is known before it is launched)"""


@lru_cache(maxsize=1024)
def _loaded(text: bytes, path: str) -> _engine.LoadedModule:
    return _engine.LoadedModule(text, path)


class Module:
    """PTX text, parsed once; the same text again costs nothing.

    Args:
        ptx: the text, of PTX ISA 6 or later.
        path: what messages call it.
    Raises:
        BadInput: the text is no PTX ("path:line:column: what").
    """

    def __init__(self, ptx: str | bytes, path: str = "kernel.ptx"):
        text = ptx.encode() if isinstance(ptx, str) else bytes(ptx)
        #: As bytes.
        self.text: bytes = text.rstrip(b"\0")
        self._loaded = _loaded(self.text, path)
        self.path = path
        about = self._loaded.description
        #: "sm_90a": what the PTX was made for.
        self.target: str = about["target"]
        #: By name.
        self.entries: dict[str, Entry] = {name: _entry(name, row, self.target) for name, row in about["entries"].items()}

    def __repr__(self) -> str:
        return f"Module({self.path!r}, {', '.join(self.entries)})"


def _entry(name: str, row: dict[str, Any], target: str) -> Entry:
    def triple(key: str) -> tuple[int, int, int] | None:
        return tuple(row[key]) if any(row[key]) else None

    return Entry(
        name=name,
        parameters=tuple(Parameter(**parameter) for parameter in row["parameters"]),
        shared_bytes=row["shared_bytes"],
        required_block=triple("required_block"),
        max_threads=row["max_threads"],
        required_cluster=triple("required_cluster"),
        target=target,
        refused=row["refused"],
    )


class Storage:
    """A live piece of the process's memory: [address, address + nbytes).

    Args:
        address: of its first byte.
        nbytes: how many.
        name: for findings.
        writable: a launch that changes a storage that is not is a trap, and the storage stays as it was.
        dtype: one of FORMATS. It, the shape, the strides (elements) and the offset (elements from `address` to the
            tensor's first) serve names of elements in findings and what is looked at for NaN; all may be left out.
        dims: names of axes, as in ("B", "T"): elements are then called "q[b=0,t=3]" and not "q[0,3]".
        keep: any object, kept alive as long as the storage.
    """

    __slots__ = ("address", "nbytes", "name", "keep", "_array")

    def __init__(
        self,
        address: int,
        nbytes: int,
        name: str = "",
        *,
        writable: bool = True,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        dims: Sequence[str] | None = None,
        keep: Any = None,
    ):
        if dtype is not None and dtype not in FORMATS:
            raise BadInput(f"{name or 'a storage'}: no format {dtype!r}; known are {', '.join(FORMATS)}")
        if shape is None:
            dtype = None
        elif strides is None:
            step, steps = 1, []
            for size in reversed(shape):
                steps.append(step)
                step *= size
            strides = steps[::-1]
        self.address, self.nbytes, self.name, self.keep = address, nbytes, name, keep
        self._array = _tensors.array_of(
            name,
            address,
            nbytes,
            format=dtype,
            shape=tuple(shape or ()),
            strides=tuple(strides or ()),
            offset=offset,
            writable=writable,
            axes=tuple(dims) if dims else None,
        )

    @classmethod
    def of(cls, tensor: Any, name: str = "") -> Storage:
        """The whole storage that a NumPy array, a PyTorch tensor or another one with DLPack lies in (of the last
        kind no more is known than from the first to the last element)."""
        at = _tensors.lies(tensor)
        return cls(
            at.address,
            at.nbytes,
            name,
            writable=at.writable,
            dtype=at.format,
            shape=at.shape if at.format and len(at.shape) <= 8 else None,
            strides=at.strides,
            offset=at.offset,
            keep=at.keep,
        )

    def read(self) -> bytes:
        """Its bytes now."""
        return ctypes.string_at(self.address, self.nbytes)

    def __repr__(self) -> str:
        return f"Storage({self.address:#x}, {self.nbytes}, {self.name!r})"


#: Elements of tensor maps by the names of formats, and by those that compilers give them.
_ELEMENTS = {
    "fp16": "f16",
    "fp32": "f32",
    "fp64": "f64",
    "s32": "i32",
    "s64": "i64",
    "fp32-ftz": "f32_ftz",
    "tf32-ftz": "tf32_ftz",
}


def tensor_map(
    address: int,
    dtype: str,
    sizes: Sequence[int],
    strides_bytes: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int] | None = None,
    *,
    swizzle: int = 0,
    interleave: int = 0,
    fill: str = "zeros",
) -> bytes:
    """The 128 bytes of a CUtensorMap, as cuTensorMapEncodeTiled makes them; the address inside is the process's own.

    Args:
        address: of the tensor's first element.
        dtype: "u8", "u16", "u32", "i32", "u64", "i64", "fp16", "fp32", "fp64", "bf16", "tf32", "f32_ftz", "tf32_ftz".
        sizes, box, steps: elements along each axis, the innermost first; `steps` None: each element.
        strides_bytes: of all axes but the innermost, in bytes.
        swizzle, interleave: the driver's numbers: 0 none, 1 32 bytes, 2 64, 3 128; 0 none, 1 16 bytes, 2 32.
        fill: what a tile holds of what lies outside the tensor: "zeros" or "nan".
    Raises:
        BadInput: what the driver would refuse, and why.
    """
    if fill not in ("zeros", "nan"):
        raise BadInput(f"tensor map: fill {fill!r}: zeros or nan")
    request = {
        "address": int(address),
        "element": _ELEMENTS.get(dtype, dtype),
        "sizes": [int(n) for n in sizes],
        "strides": [int(n) for n in strides_bytes],
        "box": [int(n) for n in box],
        "steps": [int(n) for n in steps] if steps is not None else [1] * len(box),
        "swizzle": int(swizzle),
        "interleave": int(interleave),
        "outside": ("zeros", "nan").index(fill),
    }
    return bytes(_engine.call("tensor_map", request).value["bytes"])


@dataclass
class Launched:
    """What a launch did beside what it wrote."""

    trap: Trap | None = None
    """why it did not complete"""
    verification: Verification | None = None
    """what checks, repeats and origins said; None without them"""
    printed: list[str] = field(default_factory=list)
    """lines of printf"""
    not_printed: int = 0
    """lines beyond the first few hundred"""
    lane_instructions: int = 0
    seconds: float = 0.0
    """of the run alone"""
    exponents: list[ExponentRange] = field(default_factory=list)
    """arguments of exponentials, by source line"""

    @property
    def finding(self) -> bool:
        """Whether it trapped, or a check found something."""
        return self.trap is not None or (self.verification is not None and self.verification.verdict != "pass")


def _apart(packed: bytes, entry: Entry) -> list[bytes]:
    return [packed[slot.offset : slot.offset + slot.bytes] for slot in entry.parameters]


@dataclass(frozen=True)
class Launching:
    """A launch that is about to run: what `run` was given, an argument's bytes for each parameter."""

    module: Module
    entry: str
    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    shared_bytes: int
    cooperative: bool
    arguments: list[bytes]
    storages: list[Storage]
    arch: str


#: Told of every launch: `before(launching)` gives what `after(that, trap)` is called with, or None.
watchers: list[Any] = []


def run(
    module: Module,
    entry: str,
    *,
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int] | None = None,
    shared_bytes: int = 0,
    arguments: bytes | Sequence[bytes],
    storages: Iterable[Storage],
    arch: str = "sm_90",
    checks: str = "none",
    repeats: bool = False,
    origins: bool = False,
    cooperative: bool = False,
    threads: int = 0,
    instruction_budget: int = 0,
    limit: int = 0,
    name: str = "",
    progress: Callable[[str], None] | None = None,
    recorder: _engine.Run | None = None,
) -> Launched:
    """Runs one launch on the machine.

    Without checks, repeats and origins the kernel works on the storages as they lie there. With one of them the
    storages that its arguments reach (addresses in 64-bit words included, followed on) are copied, the launch is
    judged on the copies, and what its first run wrote is copied back.

    Args:
        grid, block, cluster: blocks, threads and blocks of a cluster along x, y and z.
        shared_bytes: of dynamic shared memory.
        arguments: the packed parameter block, or the bytes of each parameter; addresses are the process's own.
        storages: all memory that the kernel may read and write.
        arch: whose bits: one of `architectures`.
        checks: "none", "all", or names of `checks` separated by commas.
        repeats: also with other orders of blocks and warps, other bytes in unwritten memory, on other architectures.
        origins: where values that are not finite were born, and special values by source line.
        cooperative: all blocks run together.
        threads: 0: all cores.
        instruction_budget: warp instructions after which a warp is taken to hang; 0: 2^29.
        limit: lane-instructions that the launch may take; 0: any number.
        name: what findings call the launch; "": the entry.
        progress: told what is being done, one line at a time.
        recorder: told of the launch, before it and after it (assay.fuzz).
    Returns:
        What it did. A trap (an address outside the storages, an assertion, a hang ...) is data too: memory is then
        as the trap left it, or with checks as before.
    Raises:
        BadInput: arguments that do not fit the entry, or PTX with a form that the machine does not know; one line.
        OverBudget: more than `limit` lane-instructions.
        KeyboardInterrupt: Ctrl-C; what was written until then stays.
    """
    if isinstance(arguments, str):
        raise BadInput(f"launch of {entry}: arguments are bytes, or a sequence of bytes, not a str")
    given = _engine.Launch(struct_bytes=ctypes.sizeof(_engine.Launch), entry=entry.encode("utf-8", "replace"))
    for what, value, into in (("grid", grid, given.grid), ("block", block, given.block), ("cluster", cluster, given.cluster)):
        if value is None:
            continue
        numbers = [int(n) for n in value]
        if len(numbers) != 3 or not all(0 <= n < 1 << 32 for n in numbers):
            raise BadInput(f"launch of {entry}: {what} {tuple(value)}: expected three numbers from 0 to 2^32 - 1")
        into[:] = numbers
    if not 0 <= shared_bytes < 1 << 32:
        raise BadInput(f"launch of {entry}: {shared_bytes} bytes of shared memory")
    given.shared_bytes, given.cooperative = shared_bytes, cooperative
    packed: Any
    if isinstance(arguments, (bytes, bytearray, memoryview)):
        packed = bytes(arguments)
        given.packed, given.packed_bytes = packed, len(packed)
    else:
        signature = module.entries.get(entry)
        packed = [bytes(argument) for argument in arguments]
        if signature is not None:
            for slot, argument in zip(signature.parameters, packed):
                if len(argument) != slot.bytes:
                    raise BadInput(
                        f"launch of {entry}: {len(argument)} bytes for parameter {slot.name}, which has {slot.bytes}"
                    )
        if signature is not None and signature.parameters and not packed:
            raise BadInput(f"launch of {entry}: 0 arguments, the entry takes {len(signature.parameters)}")
        if packed:
            given.argument_count = len(packed)
            given.arguments = (ctypes.c_char_p * len(packed))(*packed)
    kept = list(storages)
    given.storages = (_engine.Array * max(1, len(kept)))(*(storage._array for storage in kept))
    given.storage_count = len(kept)
    options = json.dumps(
        {
            "arch": arch,
            "checks": checks,
            "repeats": bool(repeats),
            "origins": bool(origins),
            "threads": int(threads),
            "instruction_budget": int(instruction_budget),
            "limit": int(limit),
            "name": name or entry,
        }
    ).encode()
    given.options = options
    if recorder is not None:
        recorder.launching(module._loaded, given, (packed, kept))
    watched = []
    if watchers and entry in module.entries:
        arguments = packed if isinstance(packed, list) else _apart(packed, module.entries[entry])
        about = Launching(
            module, entry, name or entry, tuple(grid), tuple(block), tuple(cluster) if cluster else None, shared_bytes, cooperative,
            arguments, kept, arch,
        )
        watched = [(watcher, watcher.before(about)) for watcher in watchers]
    value = _engine.launch(module._loaded, given, progress=progress, keep=(packed, kept, options))
    for watcher, before in watched:
        if before is not None:
            watcher.after(before, None if value["trap"] is None else Trap.from_json(value["trap"]))
    if recorder is not None:
        recorder.launched()
    return Launched(
        trap=None if value["trap"] is None else Trap.from_json(value["trap"]),
        verification=None if value["verification"] is None else Verification.from_json(value["verification"]),
        printed=value["printed"],
        not_printed=value["not_printed"],
        lane_instructions=value["lane_instructions"],
        seconds=value["seconds"],
        exponents=[ExponentRange.from_json(row) for row in value["exponents"]],
    )
