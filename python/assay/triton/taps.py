"""Triton's launches on a GPU, seen where Triton hands a compiled kernel to its launcher."""

from __future__ import annotations

import operator
import sys
import threading

from assay import _tensors, machine
from assay.driver_launches import told_otherwise
from assay.ptx_accesses import uses
from assay.triton import parameters
from assay.triton.driver import Launcher

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
        self._pointers = self._places = None
        self._scalar_places = [i for i, kind in enumerate(self.launcher._types) if not (isinstance(kind, str) and kind.startswith("*"))]
        #: What may be kept of a launch's values: not its tensors.
        self.scalars = _picks(self._scalar_places)

    @property
    def places(self):
        """Of pointers among a launch's values. Raises CannotKeep."""
        if self._places is None:
            self._places = tuple(row[0] for row in self.pointers)
        return self._places

    def with_none(self, scalars):
        """A launch's values again, None for each pointer."""
        values = [None] * len(self.launcher._types)
        for place, value in zip(self._scalar_places, scalars):
            values[place] = value
        return values

    @property
    def pointers(self):
        """[(place among a launch's values, place among the entry's parameters, name, is it read, is it written)]. Raises CannotKeep."""
        if self._pointers is None:
            if self.scratch:
                raise CannotKeep("memory that Triton allocates for it")
            found, place = [], 0
            for at, (kind, name) in enumerate(zip(self.launcher._types, self.launcher._names)):
                if isinstance(kind, tuple) or kind.startswith("tensordesc"):
                    raise CannotKeep(f"{name} is a tuple or a tensor map")
                if kind.startswith("*"):
                    reads, writes = self.uses or ((self.slots[place].name,),) * 2
                    found.append((at, place, name, self.slots[place].name in reads, self.slots[place].name in writes))
                place += kind != "constexpr"
            self._pointers = found
        return self._pointers

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


def _picks(places):
    """A function: a sequence's values there, as a tuple."""
    return operator.itemgetter(*places) if len(places) > 1 else lambda values: tuple(values[i] for i in places)


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

            if x * y * z == 0:
                return really()
            kernel = self._kernel(compiled)
            for watcher in list(self.watchers):
                inner = really
                really = lambda watcher=watcher, inner=inner: watcher.around(kernel, (x, y, z), stream, values, inner)  # noqa: E731
            told_otherwise.now(True)
            try:
                return really()
            finally:
                told_otherwise.now(False)

        return launch

    @staticmethod
    def _kernel(compiled):
        made = vars(compiled).get("_assay")
        if made is None:
            made = compiled._assay = Kernel(compiled)
        return made


tap = Tap()


def on_gpu():
    """Whether Triton is imported and its launches go to a GPU."""
    session, torch = sys.modules.get("assay.triton.session"), sys.modules.get("torch")
    if "triton" not in sys.modules or torch is None or (session is not None and session.active() is not None):
        return False
    return bool(torch.cuda.is_available())
