"""Each launch on the machine also on the GPU, from the same bytes: twice as its assembler makes it, and once with every rounding
of a product or sum kept apart, as the machine has them."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from ctypes import string_at
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy

from . import _engine, _tensors, cuda_driver, machine
from .errors import BadInput

_MOST_SUMS = 64  # that are looked at one by one
_APART = 512  # bytes: storages begin so far apart, each as far behind a multiple of it as in the process
_ROUNDED = re.compile(rb"^\s*(?:@!?%\w+\s+)?(mul|add|sub)((?:\.ftz|\.sat)*)\.(f32|f64|f16x2|f16|bf16x2|bf16)\s+(%\w+),\s*(%?[\w.]+),\s*(%?[\w.]+)", re.M)
_LOCATION = re.compile(rb"^\s*\.loc\s+(\d+)\s+(\d+)", re.M)
_FILE = re.compile(rb'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)


class GpuDiffers(RuntimeError):
    """A launch whose bits on the GPU are not the machine's, and not by contraction, or differ from run to run."""


@dataclass
class Difference:
    """A launch that gave other bits on the GPU. `why`: "contraction" (the assembler fused products with sums: with roundings kept
    apart the bits are the machine's), "race" (two runs on the GPU differ), "hardware" (neither); `tensors`: name -> elements that
    differ, or bytes; `lines`: of the program, where a product without a rounding meets a sum without one."""

    launch: int
    kernel: str
    why: str
    tensors: dict[str, int]
    lines: list[str]


@dataclass
class GpuLaunches:
    """What `backend="both"` saw: `launches` compared, `same` of them with the machine's bits as shipped, `same_apart` with
    roundings kept apart; `different`; `not_compared`: why -> how many."""

    gpu: str
    launches: int = 0
    same: int = 0
    same_apart: int = 0
    different: list[Difference] = field(default_factory=list)
    not_compared: dict[str, int] = field(default_factory=dict)

    def counted(self, why: str) -> int:
        return sum(row.why == why for row in self.different)

    def __str__(self) -> str:
        share = len(self.different) / self.launches if self.launches else 0.0
        text = (
            f"{self.launches} launches on {self.gpu}: {self.same} with the machine's bits as shipped, {self.same_apart} with roundings "
            f"kept apart; {len(self.different)} differ ({share:.2%}): {self.counted('contraction')} by contraction, "
            f"{self.counted('race')} from run to run, {self.counted('hardware')} otherwise"
        )
        return text + "".join(f"; {count} not compared: {why}" for why, count in self.not_compared.items())


@lru_cache(maxsize=1024)
def with_roundings_apart(text: bytes) -> bytes:
    """The PTX with `.rn` on every product and sum that has no rounding, so that no assembler fuses them."""
    answer = _engine.call("explicit_rounding", {"text": text.decode("utf-8", "surrogateescape")}).value
    return str(answer["text"]).encode("utf-8", "surrogateescape")


@lru_cache(maxsize=1024)
def as_shipped(text: bytes, arch: str) -> bytes:
    """What Triton's own assembler makes of the PTX; where there is none the PTX itself, for the driver's."""
    assembler = _triton_assembler()
    if not assembler:
        return text
    target = re.search(rb"^\s*\.target\s+(sm_\w+)", text, re.M)
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        source, made = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "wb") as out:
            out.write(text)
        name = target.group(1).decode() if target else arch
        done = subprocess.run([assembler, "-lineinfo", f"--gpu-name={name}", source, "-o", made], capture_output=True)
        if done.returncode or not os.path.exists(made):
            return text
        with open(made, "rb") as binary:
            return binary.read()


def _triton_assembler() -> str:
    triton = sys.modules.get("triton")
    if triton is None or not triton.__file__:
        return ""
    path = os.environ.get("TRITON_PTXAS_PATH") or os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "ptxas")
    return path if os.access(path, os.X_OK) else ""


@dataclass(frozen=True)
class Fusible:
    """A sum without a rounding one of whose terms is a product without one: what an assembler may fuse. `at`: where in the text
    its rounding would stand; `line`: "chunk_h.py:140"."""

    at: int
    line: str


@lru_cache(maxsize=1024)
def fusible_sums(text: bytes) -> tuple[Fusible, ...]:
    products: set[bytes] = set()
    found = []
    files = {number: name.decode(errors="replace").rsplit("/", 1)[-1] for number, name in _FILE.findall(text)}
    places = [(match.start(), match) for match in _LOCATION.finditer(text)]
    starts = [start for start, _ in places]
    for match in _ROUNDED.finditer(text):
        operation, into, left, right = match.group(1), match.group(4), match.group(5), match.group(6)
        if operation == b"mul":
            products.add(into)
        elif left in products or right in products:
            at = int(numpy.searchsorted(starts, match.start())) - 1
            number, line = places[at][1].groups() if at >= 0 else (b"", b"?")
            found.append(Fusible(match.end(1), f"{files.get(number, '?')}:{line.decode()}"))
    return tuple(found)


def with_one_apart(text: bytes, which: Fusible) -> bytes:
    """The PTX with a rounding on that sum alone: no product is fused into it."""
    return text[: which.at] + b".rn" + text[which.at :]


@dataclass
class _Copy:
    """A storage that the launch reaches: where its copy lies on the GPU, what it holds."""

    storage: machine.Storage
    at: int
    content: bytes


class _Before:
    def __init__(self, launch: machine.Launching, number: int):
        self.launch, self.number, self.fault = launch, number, ""
        self.copies: list[_Copy] = []
        self.arguments: list[bytes] = []
        self.contents: list[bytes] = []
        self.results: dict[str, list[bytes]] = {}


class OnGpu:
    """A watcher of machine.watchers."""

    def __init__(self, *, raises: bool = True, arch: str = "sm_90"):
        self.driver = cuda_driver.opened()
        if self.driver.arch != arch.rstrip("af"):
            raise BadInput(f"backend: both: the GPU is {self.driver.arch}, and the machine {arch}: name its architecture, arch=\"{self.driver.arch}\"")
        self.seen = GpuLaunches(self.driver.name)
        self.raises = raises
        self._numbers = 0
        self._lock = threading.Lock()
        self._arena, self._arena_bytes = 0, 0
        self._lost = ""

    def before(self, launch: machine.Launching) -> _Before:
        with self._lock:
            self._numbers += 1
            before = _Before(launch, self._numbers)
            if self._lost:
                before.fault = self._lost
                return before
            try:
                self.driver.enter()
                self._run_all(before)
            except BadInput as error:
                before.fault = str(error)
            except cuda_driver.DriverError as error:
                self._lost = f"the driver refuses all work since launch {before.number} of {launch.name}: {error}"
                before.fault = str(error)
        return before

    def after(self, before: _Before, trap: Any) -> None:
        if trap is not None and not before.fault:
            before.fault = f"{trap.kind} on the machine"
        if before.fault:
            self.seen.not_compared[before.fault] = self.seen.not_compared.get(before.fault, 0) + 1
            return
        self.seen.launches += 1
        on_machine = [string_at(copy.storage.address, copy.storage.nbytes) for copy in before.copies]
        first, second, apart = (before.results[how] for how in ("shipped", "again", "apart"))
        self.seen.same += first == second == on_machine
        self.seen.same_apart += apart == on_machine
        if first == second == on_machine and apart == on_machine:
            return
        why = "race" if first != second else "contraction" if apart == on_machine else "hardware"
        other = second if why == "race" else on_machine
        here = first if first != other else apart
        tensors = {_name(copy, i): _apart(copy, a, b) for i, (copy, a, b) in enumerate(zip(before.copies, here, other)) if a != b}
        lines = self._fused_lines(before, first) if why == "contraction" else []
        row = Difference(before.number, before.launch.name, why, tensors, lines)
        self.seen.different.append(row)
        if self.raises and why != "contraction":
            told = "two runs on the GPU differ" if why == "race" else f"{self.driver.name} gives other bits than the machine, roundings kept apart"
            listed = ", ".join(f"{count} of {name}" for name, count in tensors.items())
            raise GpuDiffers(f"launch {row.launch} of {row.kernel}: {told}: {listed}")

    # Ours.

    def _run_all(self, before: _Before) -> None:
        launch = before.launch
        before.copies = [_Copy(s, 0, string_at(s.address, s.nbytes)) for s in _reached(launch)]
        self._place(before)
        shipped, apart = as_shipped(launch.module.text, self.driver.arch), with_roundings_apart(launch.module.text)
        for how, image in (("shipped", shipped), ("again", shipped), ("apart", apart)):
            before.results[how] = self._run(before, image)

    def _run(self, before: _Before, image: bytes) -> list[bytes]:
        """What the copies hold after a launch from what they held before."""
        launch = before.launch
        for copy, content in zip(before.copies, before.contents):
            self.driver.upload(copy.at, content, len(content))
        self.driver.launch(
            image, launch.entry, launch.grid, launch.block, before.arguments, cluster=launch.cluster,
            shared_bytes=launch.shared_bytes, cooperative=launch.cooperative,
        )  # fmt: skip
        self.driver.wait()
        results = []
        for copy, content in zip(before.copies, before.contents):
            result = self.driver.download(copy.at, len(content))
            # Addresses that the launch left as they were are the process's again.
            results.append(copy.content if result == content else result)
        return results

    def _fused_lines(self, before: _Before, shipped: list[bytes]) -> list[str]:
        text = before.launch.module.text
        sums = fusible_sums(text)
        fused = []
        if len(sums) <= _MOST_SUMS:
            with self._lock:
                self.driver.enter()
                self._place(before)
                fused = [s for s in sums if self._run(before, as_shipped(with_one_apart(text, s), self.driver.arch)) != shipped]
        return list(dict.fromkeys(s.line for s in fused or sums))

    def _place(self, before: _Before) -> None:
        """Where the copies lie now, and what they and the arguments hold there."""
        offsets, at = [], 0
        for copy in before.copies:
            offset = at + copy.storage.address % _APART
            offsets.append(offset)
            at = (offset + copy.storage.nbytes + 2 * _APART - 1) // _APART * _APART
        if at > self._arena_bytes:
            if self._arena:
                self.driver.free(self._arena)
            self._arena_bytes = 2 * at
            self._arena = self.driver.allocate(self._arena_bytes)
        for copy, offset in zip(before.copies, offsets):
            copy.at = self._arena + offset
        before.arguments = [self._moved(argument, before.copies) for argument in before.launch.arguments]
        before.contents = [self._moved(c.content, before.copies) if _may_hold_addresses(c.storage) else c.content for c in before.copies]

    @staticmethod
    def _moved(content: bytes, copies: list[_Copy]) -> bytes:
        """With addresses of storages made those of their copies."""
        if len(content) < 8:
            return content
        words = numpy.frombuffer(content, numpy.uint64, len(content) // 8).copy()
        given = words.copy()
        for copy in copies:
            low = copy.storage.address
            inside = (given >= low) & (given <= low + copy.storage.nbytes)
            words[inside] = given[inside] - numpy.uint64(low) + numpy.uint64(copy.at)
        return words.tobytes() + content[8 * len(words) :]


def _may_hold_addresses(storage: machine.Storage) -> bool:
    kind = storage._array.format
    return kind < 0 or _tensors.FORMATS[kind] == "i64"


def _reached(launch: machine.Launching) -> list[machine.Storage]:
    """The storages that addresses in the arguments lie in, and those that addresses in these lie in."""
    storages = sorted((s for s in launch.storages if s.nbytes), key=lambda s: s.address)
    starts = numpy.array([s.address for s in storages], numpy.uint64)
    found: dict[int, None] = {}
    open_: list[int] = []

    def scan(content: bytes) -> None:
        words = numpy.frombuffer(content, numpy.uint64, len(content) // 8)
        for index in set(numpy.searchsorted(starts, words, side="right").tolist()):
            if index == 0:
                continue
            storage = storages[index - 1]
            inside = (words >= storage.address) & (words < storage.address + storage.nbytes)
            if index - 1 not in found and bool(inside.any()):
                found[index - 1] = None
                open_.append(index - 1)

    for argument in launch.arguments:
        scan(argument)
    while open_:
        storage = storages[open_.pop()]
        if _may_hold_addresses(storage):
            scan(string_at(storage.address, storage.nbytes))
    return [storages[index] for index in sorted(found)]


def _name(copy: _Copy, index: int) -> str:
    return copy.storage._array.name.decode() or f"memory {index + 1}"


def _apart(copy: _Copy, one: bytes, other: bytes) -> int:
    kind = copy.storage._array.format
    width = 1 if kind < 0 else _tensors.FORMAT_BYTES[_tensors.FORMATS[kind]]
    different = numpy.frombuffer(one, numpy.uint8) != numpy.frombuffer(other, numpy.uint8)
    count = len(different) // width * width
    return int(different[:count].reshape(-1, width).any(axis=1).sum())
