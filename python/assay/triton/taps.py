"""Triton's launches on a GPU, seen where Triton hands a compiled kernel to its launcher; and which arguments a kernel reads and
writes, from its PTX."""

from __future__ import annotations

import re
import sys
import threading
from functools import lru_cache

from assay import _tensors, machine
from assay.triton import parameters
from assay.triton.driver import Launcher

_INSTRUCTION = re.compile(r"(?:^|(?<=;))\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+([^;]*);", re.M)
_REGISTER = re.compile(r"%\w+")
_MEMORY = re.compile(r"\[\s*(%?\w+)[^\]]*\]")


@lru_cache(maxsize=1024)
def uses(text: bytes, entry: str) -> tuple[frozenset, frozenset] | None:
    """(parameters read through, parameters written through) of an entry; None where an address comes from memory or a call, so that
    nothing is known."""
    source = text.decode("utf-8", "replace")
    begin = re.search(rf"\.entry\s+{re.escape(entry)}\b", source)
    if begin is None:
        return None
    body = source[begin.end() :]
    end = re.search(r"^}", body, re.M)
    rows = [(m.group(1), m.group(2)) for m in _INSTRUCTION.finditer(body[: end.start()] if end else body)]
    if any(name.startswith("call") for name, _ in rows):
        return None
    return _followed(rows)


def _followed(rows):
    """Addresses follow from parameters through whatever computes with them, in any order of execution."""
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
    reads, writes = set(), set()
    for name, operands in rows:
        ways = _ways(name)
        if not ways:
            continue
        bases = _MEMORY.findall(operands)
        for base in bases[1:] if "async" in name and name.startswith("cp") and len(bases) > 1 and ways == "r" else bases[:1]:
            if base in loaded and not of.get(base):
                return None
            reads |= of.get(base, set()) if "r" in ways else set()
            writes |= of.get(base, set()) if "w" in ways else set()
    return frozenset(reads), frozenset(writes)


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


class DeviceStorage(machine.Storage):
    """A storage on the GPU, named after a tensor in it. `read` gives its bytes now, once what was launched is done."""

    __slots__ = ("tensor",)

    def __init__(self, tensor, name):
        storage = tensor.untyped_storage()
        shape = tuple(tensor.shape)
        dtype = _tensors.format_name(tensor.dtype)
        fits = len(shape) <= 8 and dtype is not None
        super().__init__(
            storage.data_ptr(), storage.nbytes(), name, dtype=dtype if fits else None, shape=shape if fits else None,
            strides=tuple(tensor.stride()), offset=tensor.storage_offset(), keep=tensor,
        )
        self.tensor = tensor

    def read(self):
        import torch

        storage = self.tensor.untyped_storage()
        whole = torch.empty(0, dtype=torch.uint8, device=self.tensor.device).set_(storage, 0, (storage.nbytes(),))
        return whole.cpu().numpy().tobytes()


class Kernel:
    """A compiled kernel, as launches need it."""

    def __init__(self, compiled):
        metadata = compiled.metadata
        self.launcher = Launcher(None, compiled.src, metadata)
        self.name = self.launcher._kernel
        self.module = machine.Module(compiled.asm["ptx"], path=metadata.name + ".ptx")
        self.entry = metadata.name
        self.slots = self.module.entries[self.entry].parameters
        self.arch = f"sm_{metadata.target.arch}"
        self.block = (32 * metadata.num_warps, 1, 1)
        self.shared, self.cluster = metadata.shared, self.launcher._cluster
        self.cooperative = bool(getattr(metadata, "launch_cooperative_grid", False))
        self.scratch = any(getattr(metadata, f"{which}_scratch_size", 0) for which in ("global", "profile"))
        self.uses = uses(self.module.text, self.entry)
        self.places = {}  # of Armed

    def given(self, values):
        """[(name, type, value)] in the entry's order."""
        return list(parameters.flatten(self.launcher._types, self.launcher._names, values, self.launcher._maps))

    def launching(self, grid, given, storages, addresses):
        """As the machine's watchers are told; `addresses`: of pointers among `given`, by place."""
        arguments = []
        for i, ((what, kind, value), slot) in enumerate(zip(given, self.slots)):
            if i in addresses:
                arguments.append(addresses[i].to_bytes(8, "little"))
            else:
                arguments.append(parameters.pack(what, kind, value, slot.bytes, None, _no_map))
        arguments += [bytes(slot.bytes) for slot in self.slots[len(given) :]]
        cluster = self.cluster or (1, 1, 1)
        return machine.Launching(
            self.module, self.entry, self.name, tuple(int(n) * c for n, c in zip(grid, cluster)), self.block, self.cluster, self.shared,
            self.cooperative, arguments, storages, self.arch,
        )


class CannotKeep(Exception):
    """Why a launch cannot be written down."""


def _no_map(*_ignored, **_named):
    raise CannotKeep("a tensor map")


def pointers(given):
    """{place: (address, tensor or None)} of the pointers among the arguments."""
    found = {}
    for i, (name, kind, value) in enumerate(given):
        if kind == "nvTmaDesc":
            raise CannotKeep(f"{name} is a tensor map")
        if not kind.startswith("*"):
            continue
        base = getattr(value, "base", value)
        if value is None:
            found[i] = (0, None)
        elif hasattr(base, "untyped_storage"):
            found[i] = (value.data_ptr(), base)
        elif isinstance(value, int) and value == 0:
            found[i] = (0, None)
        else:
            raise CannotKeep(f"{name} is no tensor")
    return found


class Tap:
    """Calls `watcher.around(kernel, grid, stream, values, run)` in place of each launch: `run()` makes it. Installed once for all
    watchers; nothing is replaced while there are none."""

    def __init__(self):
        self.watchers = []
        self._lock = threading.Lock()
        self._before = None

    def add(self, watcher):
        with self._lock:
            self.watchers.append(watcher)
            if self._before is None:
                self._install()

    def remove(self, watcher):
        with self._lock:
            self.watchers.remove(watcher)
            if not self.watchers and self._before is not None:
                name, value = self._before
                setattr(self._class, name, value)
                self._before = None

    def _install(self):
        from triton.compiler import CompiledKernel

        self._class = CompiledKernel
        name = "run" if isinstance(vars(CompiledKernel).get("run"), property) else "__getattribute__"  # the latter: Triton 3.4
        before = vars(CompiledKernel)[name]
        self._before = (name, before)
        if name == "run":
            CompiledKernel.run = property(lambda kernel: self._tapped(kernel, before.fget(kernel)))
        else:

            def get(kernel, attribute):
                value = before(kernel, attribute)
                return self._tapped(kernel, value) if attribute == "run" else value

            CompiledKernel.__getattribute__ = get

    def _tapped(self, compiled, run):
        def launch(x, y, z, stream, function, packed, metadata, enter, leave, *values):
            def really():
                return run(x, y, z, stream, function, packed, metadata, enter, leave, *values)

            if x * y * z == 0 or getattr(_inside, "now", False):
                return really()
            kernel = self._kernel(compiled)
            for watcher in list(self.watchers):
                inner = really
                really = lambda watcher=watcher, inner=inner: watcher.around(kernel, (x, y, z), stream, values, inner)  # noqa: E731
            return really()

        return launch

    @staticmethod
    def _kernel(compiled):
        made = vars(compiled).get("_assay")
        if made is None:
            made = compiled._assay = Kernel(compiled)
        return made


_inside = threading.local()
tap = Tap()


def on_gpu():
    """Whether Triton is imported and its launches go to a GPU."""
    session, torch = sys.modules.get("assay.triton.session"), sys.modules.get("torch")
    if "triton" not in sys.modules or torch is None or (session is not None and session.active() is not None):
        return False
    return bool(torch.cuda.is_available())
