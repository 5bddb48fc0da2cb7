"""Launches written down as they happen, to be run again anywhere.

    with assay.capture("run.assay", when="nonfinite"):
        train_step()

leaves a folder: a launch file for each launch that was kept (`assay check run.assay/launch-0007-softmax.json`, `trace`,
`capsule new`), its PTX, and what its tensors held before; "launch.json" is the last. A storage that several launches or
arguments share is kept once.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import threading
from typing import Any, Callable, Sequence

import numpy

from . import driver_launches, machine, stacks
from .errors import BadInput

#: Formats that launch files have, with NumPy's integers of that width and the bits of an infinity.
_FLOATS = {
    "fp64": (numpy.uint64, 0x7FF0000000000000),
    "fp32": (numpy.uint32, 0x7F800000),
    "fp16": (numpy.uint16, 0x7C00),
    "bf16": (numpy.uint16, 0x7F80),
}
_WIDTHS = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "i64": 8, "i32": 4}
_SAFETENSORS = {"fp64": "F64", "fp32": "F32", "fp16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32", "u8": "U8"}
#: Not the program's own frames.
_OTHERS = ("assay.", "triton.", "torch.", "contextlib.", "_pytest.", "pytest.", "pluggy.")

Trigger = Callable[["Captured"], bool]


class Captured:
    """A launch: `kernel`, `number` from 1 on, `trap` (what it stopped at, or None), `changed` (names of the tensors that
    it wrote other bits to), `nonfinite` (of those, with NaN or infinity there), `file` where it is kept, else ""."""

    def __init__(self, kernel: str, number: int):
        self.kernel, self.number, self.file = kernel, number, ""
        self.trap: Any = None
        self.changed: list[str] = []
        self.nonfinite: list[str] = []

    def __repr__(self) -> str:
        return f"Captured({self.number}, {self.kernel!r}, file={self.file!r})"


class capture:
    """Keeps launches: on the machine, of Triton's kernels (`assay.triton.machine`) and of `assay.machine.run`; on a GPU of Triton's
    kernels, if Triton is imported before, and of all others whose PTX can be had: of NVRTC, CuPy, extensions that hold PTX.
    Of Triton's, "nonfinite" judges outputs on the device, with no waiting for launches, and the launch is written a few launches
    later, or at the end; other triggers, and all of launches that are not Triton's, wait for every launch that they look at.
    Launches that are not Triton's are told by CUPTI; a profiler that holds it is named in `left_out`. PTX that was loaded at
    run time is known if it was loaded inside, or if the program was started with CUDA_INJECTION64_PATH naming
    `assay.driver_launches.library_path()`; that of extensions is found in their files.

    Args:
        path: a folder, which is made; what an earlier capture left there is replaced.
        when: "always"; "nonfinite": the first that writes NaN or infinity where there was none; "trap": those that trap;
            a number N: every Nth; a function of a `Captured` that says whether to keep it.
        kernel: a regular expression: only kernels whose name it matches are looked at.
        limit: how many are kept.
    Attributes:
        seen: how many launches were looked at; kept: a `Captured` for each that was kept; left_out: why others were not
            that `when` asked for, once for each kernel and reason.
    Raises:
        BadInput: a `when` that is none of these, a path that cannot be written.

    What lies behind addresses in memory (tables of pointers) and tensor maps is not kept: such launches are left out.
    """

    def __init__(self, path: str | os.PathLike[str], when: str | int | Trigger = "always", *, kernel: str = "", limit: int = 100):
        self.path, self.limit = os.fspath(path), limit
        self._asked = re.compile(kernel)
        self._keep, self._limit = _trigger(when), 1 if when == "nonfinite" else limit
        self.seen = 0
        self.kept: list[Captured] = []
        self.left_out: list[str] = []
        self._told_of: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._every = when if isinstance(when, int) and not isinstance(when, bool) else 1
        self._armed: Any = None
        self._waits_for_nonfinite = when == "nonfinite"
        self._tap: Any = None
        self._listens = False
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> capture:
        try:
            os.makedirs(self.path, exist_ok=True)
            for name in os.listdir(self.path):
                if re.fullmatch(r"launch(-\d+-.*)?\.json|[0-9a-f]{16}\.(ptx|safetensors)", name):
                    os.remove(os.path.join(self.path, name))
        except OSError as error:
            raise BadInput(f"capture: {self.path}: {error.strerror}") from None
        machine.watchers.append(self)
        if "triton" in sys.modules and "torch" in sys.modules:
            self.tap_triton()
        self._listen_to_driver()
        return self

    def __exit__(self, *error: Any) -> bool:
        machine.watchers.remove(self)
        self._undo.close()
        if self._listens:
            without = driver_launches.listener.remove(self)
            if without:
                self.left_out.append(f"{without} launches of kernels without PTX (machine code alone, or a library's of NVIDIA's or PyTorch's)")
        if self._tap is not None:
            self._tap.remove(self)
        if self._armed is not None:
            self._armed.look(wait=True)
        return False

    def tap_triton(self) -> None:
        """For a program that imports Triton inside."""
        from .triton import taps

        if self._tap is not None or not taps.on_gpu():
            return
        self._tap = taps.tap
        self._tap.add(self)
        if self._waits_for_nonfinite:
            from .triton.armed import Armed

            self._armed = Armed(self._triggered)
            self._armed.start(sys.modules["torch"])

    def _listen_to_driver(self) -> None:
        session = sys.modules.get("assay.triton.session")
        if session is not None and session.active() is not None:
            return
        if not driver_launches.has_driver():
            return
        why = driver_launches.listener.add(self)
        self._listens = not why
        if self._listens:
            self._undo.enter_context(driver_launches.cupy_makes_ptx())
        if why:
            self.left_out.append(f"launches that are not Triton's: {why}")

    # What Triton's launches on a GPU call.

    def around(self, kernel: Any, grid: Any, stream: int, values: Any, run: Callable[[], Any]) -> Any:
        """A launch of Triton's: `run()` makes it."""
        torch, armed = sys.modules["torch"], self._armed
        if len(self.kept) >= self._limit or (armed is not None and not armed.armed) or torch.cuda.is_current_stream_capturing():
            return run()
        if self._asked.pattern and not self._asked.search(kernel.name):
            return run()
        with self._lock:
            self.seen += 1
            number = self.seen
        if number % self._every:
            return run()
        taps = sys.modules["assay.triton.taps"]
        try:
            if armed is not None:
                return armed.around(number, kernel, grid, stream, values, run)
            if kernel.scratch:
                raise taps.CannotKeep("memory that Triton allocates for it")
            given = kernel.given(values)
            addresses = taps.pointers(given)
        except taps.CannotKeep as error:
            self._leave_out(number, kernel.name, str(error))
            return run()
        storages: dict[int, Any] = {}
        for place, (_, tensor) in addresses.items():
            if tensor is not None and tensor.untyped_storage().nbytes():
                storages.setdefault(tensor.untyped_storage().data_ptr(), taps.DeviceStorage(tensor, given[place][0]))
        torch.cuda.synchronize()
        launching = kernel.launching(grid, given, list(storages.values()), {place: address for place, (address, _) in addresses.items()})
        before = _Before(Captured(kernel.name, number), launching)
        result = run()
        torch.cuda.synchronize()
        self.after(before, None)
        return result

    # What launches call that are not Triton's.

    def driver_before(self, launch: driver_launches.DriverLaunch) -> _Before | None:
        if len(self.kept) >= self._limit or not self._asked.search(launch.name) or launch.is_captured_into_a_graph:
            return None
        if self._armed is not None and not self._armed.armed:
            return None
        with self._lock:
            self.seen += 1
            number = self.seen
        if number % self._every:
            return None
        try:
            launching = launch.launching()
        except (driver_launches.CannotKeep, BadInput) as error:
            self._leave_out(number, launch.name, str(error))
            raise driver_launches.CannotKeep(str(error)) from None
        launch.wait()
        return _Before(Captured(launch.name, number), launching)

    def driver_after(self, before: _Before) -> None:
        driver_launches.wait()
        self.after(before, None)

    def _triggered(self, pending: Any, launching: machine.Launching, stack: list[stacks.Place]) -> bool:
        before = _Before(Captured(pending.kernel.name, pending.number), launching, stack=_own(stack))
        for storage in launching.storages:
            storage.turned = True
        self.after(before, None)
        return bool(self.kept)

    # What the machine calls.

    def before(self, launch: machine.Launching) -> _Before | None:
        if len(self.kept) >= self._limit or not self._asked.search(launch.name):
            return None
        with self._lock:
            self.seen += 1
            number = self.seen
        return _Before(Captured(launch.name, number), launch)

    def after(self, before: _Before, trap: Any) -> None:
        captured = before.captured
        captured.trap = trap
        before.compare()
        if not self._keep(captured):
            return
        with self._lock:
            if len(self.kept) >= self._limit:
                return
            if before.lacks:
                self._leave_out(captured.number, captured.kernel, before.lacks)
                return
            self._write(before)
            self.kept.append(captured)

    def _leave_out(self, number: int, kernel: str, why: str) -> None:
        """Said of a kernel's first launch alone."""
        if (kernel, why) not in self._told_of:
            self._told_of.add((kernel, why))
            self.left_out.append(f"launch {number} of {kernel}: {why}")

    def _write(self, before: _Before) -> None:
        captured, launch = before.captured, before.launch
        text = launch.module.text
        ptx = hashlib.sha256(text).hexdigest()[:16] + ".ptx"
        self._store(ptx, text)
        tensors = {}
        for tensor in before.tensors:
            file = self._store_tensors({tensor.name: (tensor, tensor.content)})
            tensors[tensor.name] = {
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "values": {"file": file, "name": tensor.name},
                "use": "in_out" if tensor.name in captured.changed else "in",
            }
        step: dict[str, Any] = {"function": launch.entry, "grid": list(launch.grid), "block": list(launch.block)}
        if launch.cluster:
            step["cluster"] = list(launch.cluster)
        if launch.shared_bytes:
            step["shared"] = launch.shared_bytes
        if launch.cooperative:
            step["cooperative"] = True
        document = {
            "name": re.sub(r"[^A-Za-z0-9_.+-]", "_", captured.kernel),
            "ptx": ptx,
            "tensors": tensors,
            "launches": [{**step, "arguments": before.arguments}],
            "origin": {"number": captured.number, "arch": launch.arch, "stack": before.stack},
        }
        changed = {t.name: (t, t.bytes()) for t in before.tensors if t.name in captured.changed}
        if changed and captured.trap is None:
            document["recorded"] = self._store_tensors(changed)
        captured.file = os.path.join(self.path, f"launch-{captured.number:04d}-{document['name'][:80]}.json")
        for file in (captured.file, os.path.join(self.path, "launch.json")):
            with open(file, "w", encoding="utf-8") as out:
                json.dump(document, out, indent=1)

    def _store_tensors(self, tensors: dict[str, tuple[_Tensor, bytes]]) -> str:
        header, at = {}, 0
        for name, (tensor, content) in tensors.items():
            header[name] = {"dtype": _SAFETENSORS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(content)]}
            at += len(content)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        content = b"".join([len(text).to_bytes(8, "little"), text, *(content for _, content in tensors.values())])
        file = hashlib.sha256(content).hexdigest()[:16] + ".safetensors"
        self._store(file, content)
        return file

    def _store(self, name: str, content: bytes) -> None:
        path = os.path.join(self.path, name)
        if not os.path.exists(path):
            with open(path, "wb") as out:
                out.write(content)


def _trigger(when: str | int | Trigger) -> Trigger:
    if callable(when):
        return when
    if isinstance(when, int) and not isinstance(when, bool) and when > 0:
        return lambda launch: launch.number % when == 0
    named: dict[Any, Trigger] = {
        "always": lambda launch: True,
        "nonfinite": lambda launch: bool(launch.nonfinite),
        "trap": lambda launch: launch.trap is not None,
    }
    if not isinstance(when, str) or when not in named:
        raise BadInput(f"capture: when {when!r}: always, nonfinite, trap, a number of launches, or a function")
    return named[when]


class _Tensor:
    """A storage that an argument points into, as a launch file names it, and what it held."""

    def __init__(self, name: str, storage: machine.Storage):
        array = storage._array
        self.name, self.storage = name, storage
        dtype = machine.FORMATS[array.format] if array.format >= 0 else "u8"
        width = _WIDTHS.get(dtype, 0)
        if not width or storage.nbytes % width:
            dtype, width = "u8", 1
        shape = tuple(int(n) for n in array.shape[: array.rank])
        self.dtype = dtype
        self.shape = shape if _is_whole(array, shape, storage.nbytes // width) else (storage.nbytes // width,)
        self.content = self.bytes()

    def bytes(self) -> bytes:
        return self.storage.read()


def _is_whole(array: Any, shape: Sequence[int], elements: int) -> bool:
    """Whether the tensor is its storage, in order."""
    step = 1
    for size, stride in zip(shape[::-1], list(array.strides[: array.rank])[::-1]):
        if size != 1 and stride != step:
            return False
        step *= size
    return bool(shape) and array.offset == 0 and step == elements


class _Before:
    """A launch that is about to run."""

    def __init__(self, captured: Captured, launch: machine.Launching, stack: list[list[Any]] | None = None):
        self.captured, self.launch = captured, launch
        self.lacks = ""
        self.stack = _program_stack() if stack is None else stack
        self.tensors: list[_Tensor] = []
        self.arguments = [
            self._argument(slot, value) for slot, value in zip(launch.module.entries[launch.entry].parameters, launch.arguments)
        ]
        for tensor in self.tensors:
            if tensor.dtype == "i64" and self._holds_addresses(tensor):
                self.lacks = f"{tensor.name} holds addresses"

    def _argument(self, slot: machine.Parameter, value: bytes) -> Any:
        if slot.alignment >= 64 and slot.bytes == 128:
            self.lacks = f"{slot.name} is a tensor map"
        if slot.is_pointer_sized:
            return self._pointer(slot, value) or ({"bytes": value.hex(" ")} if any(value) else None)
        members: list[dict[str, Any]] = []
        taken = 0
        for at in range(0, len(value) - 7, 8):
            pointer = self._pointer(slot, value[at : at + 8])
            if pointer:
                members += _bytes_of(value, taken, at)
                members.append({**pointer, "at": at})
                taken = at + 8
        if not members:
            return {"bytes": value.hex(" ")}
        return {"struct": members + _bytes_of(value, taken, len(value)), "size": len(value)}

    def _pointer(self, slot: machine.Parameter, value: bytes) -> dict[str, Any] | None:
        address = int.from_bytes(value, "little")
        for storage in self.launch.storages:
            if storage.address <= address < storage.address + storage.nbytes:
                tensor = next((t for t in self.tensors if t.storage is storage), None)
                if tensor is None:
                    taken = {t.name for t in self.tensors}
                    name = re.sub(r"\W", "_", storage._array.name.decode() or slot.name) or "x"
                    while name in taken:
                        name += "_"
                    tensor = _Tensor(name, storage)
                    self.tensors.append(tensor)
                return {"pointer": tensor.name, "offset": address - storage.address}
        return None

    def _holds_addresses(self, tensor: _Tensor) -> bool:
        words = numpy.frombuffer(tensor.content, dtype=numpy.uint64)
        return any(bool(((words >= s.address) & (words < s.address + s.nbytes)).any()) for s in self.launch.storages if s.nbytes)

    def compare(self) -> None:
        """What the launch has changed."""
        for tensor in self.tensors:
            after = tensor.bytes()
            if after == tensor.content:
                continue
            self.captured.changed.append(tensor.name)
            if tensor.dtype in _FLOATS:
                kind, infinity = _FLOATS[tensor.dtype]
                new, old = numpy.frombuffer(after, dtype=kind), numpy.frombuffer(tensor.content, dtype=kind)
                # What nobody has written yet is all ones on the machine.
                had_value = ((old & kind(infinity)) != infinity) | (old == kind(~kind(0)))
                if bool((((new & kind(infinity)) == infinity) & (new != old) & had_value).any()):
                    self.captured.nonfinite.append(tensor.name)


def _bytes_of(value: bytes, begin: int, end: int) -> list[dict[str, Any]]:
    return [{"bytes": value[begin:end].hex(" "), "at": begin}] if begin < end else []


def _program_stack() -> list[list[Any]]:
    """[file, line, function] of the calling program's frames, outermost first."""
    return _own(stacks.places(stacks.frames()))


def _own(stack: list[stacks.Place], depth: int = 20) -> list[list[Any]]:
    found: list[list[Any]] = []
    for file, line, function, module in stack:
        if module == "__channelexec__" or len(found) == depth:  # in a worker of pytest-xdist what called it is execnet's
            break
        if not (module + ".").startswith(_OTHERS):
            found.append([file, line, function])
    return found[::-1]
