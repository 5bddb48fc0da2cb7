"""A capture that waits for the first output that is not finite, on a GPU: outputs are judged on the device behind each launch, with
one flag; what a launch had is kept there if the flag says so, and read when the host sees that."""

from __future__ import annotations

import ctypes
import threading
from collections import deque

from assay import _tensors, cuda_driver, machine
from assay.triton import judging, taps

_ALIGNED = 512


class _Kept(machine.Storage):
    """A storage of the launch that triggered: `read` gives what it held before, then (`turned`) after."""

    __slots__ = ("before", "behind", "turned")

    def read(self):
        return self.behind if self.turned else self.before


class Pending:
    """A launch of which the device has not told yet. `storages`: (address, bytes, name, format, shape, strides, offset, where the bytes
    before and after lie in the arena, or None)."""

    def __init__(self, number, kernel, grid, given, addresses, stack):
        self.number, self.kernel, self.grid, self.stack = number, kernel, grid, stack
        self.given = [(what, kind, None if kind.startswith("*") else value) for what, kind, value in given]
        self.addresses = addresses
        self.storages = []


class Armed:
    """`found(Pending, Launching)` is called in the launching thread when a launch has triggered, and says whether that is what was
    waited for. If not (what is not finite was there before) further launches are judged; those that had been made meanwhile are not."""

    def __init__(self, found, driver=None):
        self._found, self._driver = found, driver
        self._state = None
        self._lock = threading.Lock()

    def start(self, torch):
        self._torch = torch
        driver = self._driver or cuda_driver.opened()
        self._driver = driver
        driver.enter()
        self._flag = torch.zeros(4, dtype=torch.int32, device="cuda")
        self._host = torch.zeros(4, dtype=torch.int32, pin_memory=driver.pins)
        self._words = (ctypes.c_uint32 * 2).from_address(self._host.data_ptr())
        self._judge = judging.Judge(driver, self._flag.data_ptr(), self._host.data_ptr())
        self._arena = self._scratch = None
        self._pending = deque()
        self._state = "armed"

    def around(self, number, kernel, grid, stream, given, addresses, stack, run):
        """Launches, and judges what it wrote."""
        with self._lock:
            return self._around(number, kernel, grid, stream, given, addresses, stack, run)

    def _around(self, number, kernel, grid, stream, given, addresses, stack, run):
        pending = Pending(number, kernel, grid, given, {i: address for i, (address, _) in addresses.items()}, stack)
        rows, at, scratch = [], 0, 0
        copies = []
        reads, writes = self._uses(kernel, addresses)
        seen = {}
        for i, (_, tensor) in addresses.items():
            if tensor is None:
                continue
            storage = tensor.untyped_storage()
            address, nbytes = storage.data_ptr(), storage.nbytes()
            if address in seen:
                seen[address][1] |= i in reads
                seen[address][2] |= i in writes
            elif nbytes:
                seen[address] = [tensor, i in reads, i in writes, nbytes, given[i][0]]
        for address, (tensor, is_read, is_written, nbytes, name) in seen.items():
            dtype = _tensors.format_name(tensor.dtype)
            room = -(-nbytes // _ALIGNED) * _ALIGNED
            before = behind = None
            if is_written and is_read:
                copies.append((address, scratch, nbytes))
                before, at = at, at + room
                rows.append(("scratch", scratch, before, nbytes, ""))
                scratch += room
            elif not is_written:
                before, at = at, at + room
                rows.append(("", address, before, nbytes, ""))
            if is_written:
                behind, at = at, at + room
                rows.append(("", address, behind, nbytes, dtype or ""))
            pending.storages.append((address, nbytes, name, dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), before, behind))
        if len(rows) > judging.MOST:
            return run()
        self._make_room(at, scratch)
        arena, base = self._arena.data_ptr(), self._scratch.data_ptr() if scratch else 0
        for address, to, nbytes in copies:
            self._driver.copy(base + to, address, nbytes, stream)
        result = run()
        pending.arena = self._arena
        self._judge.launch(
            number, [((base if where else 0) + from_, arena + to, nbytes, dtype) for where, from_, to, nbytes, dtype in rows], stream
        )
        self._pending.append(pending)
        self.look()
        return result

    def look(self, wait=False):
        """What the device has told; `wait`: once all launches are done."""
        if self._state != "armed":
            return
        if wait:
            self._torch.cuda.synchronize()
        flag, done = self._words
        if flag:
            self._torch.cuda.synchronize()
            if any([self._write(pending) for pending in self._pending if pending.number == flag]):
                self._state = "triggered"
            else:
                self._flag.zero_()
                self._words[:] = 0, 0
            self._pending.clear()
            return
        while self._pending and self._pending[0].number <= done:
            self._pending.popleft()

    @property
    def armed(self):
        return self._state == "armed"

    # Ours.

    @staticmethod
    def _uses(kernel, addresses):
        """Places of pointers that are read, and that are written."""
        key = tuple(addresses)
        found = kernel.places.get(key)
        if found is None:
            names = [slot.name for slot in kernel.slots]
            reads, writes = kernel.uses or (names, names)
            found = kernel.places[key] = {i for i in key if names[i] in reads}, {i for i in key if names[i] in writes}
        return found

    def _make_room(self, arena, scratch):
        torch = self._torch
        if self._arena is None or self._arena.numel() < arena:
            self._arena = torch.empty(arena + arena // 2 + _ALIGNED, dtype=torch.uint8, device="cuda")
        if scratch and (self._scratch is None or self._scratch.numel() < scratch):
            self._scratch = torch.empty(scratch + scratch // 2, dtype=torch.uint8, device="cuda")

    def _write(self, pending):
        arena = pending.arena.cpu().numpy()
        storages = []
        for address, nbytes, name, dtype, shape, strides, offset, before, behind in pending.storages:
            fits = dtype is not None and len(shape) <= 8
            made = _Kept(
                address, nbytes, name, dtype=dtype if fits else None, shape=shape if fits else None, strides=tuple(strides), offset=offset
            )
            made.turned = False
            # What is only written was anything before: all ones, as memory that nobody has written is on the machine.
            made.before = b"\xff" * nbytes if before is None else arena[before : before + nbytes].tobytes()
            made.behind = made.before if behind is None else arena[behind : behind + nbytes].tobytes()
            storages.append(made)
        launching = pending.kernel.launching(pending.grid, pending.given, storages, pending.addresses)
        return self._found(pending, launching)
