"""Sets of torch storages by weak references.

One of them holds what kernels may reach. An address gets into a table of pointers, or into a kernel's arguments,
through `data_ptr()`: that is where a storage becomes known; while it lives kernels reach it, and nothing else.
"""

from __future__ import annotations

import threading


class Storages:
    """Live storages. May be used by several threads."""

    def __init__(self, torch):
        self._torch = torch
        self._known = {}  # address of the C++ object, which is not reused while a weak reference to it lives
        self._lock = threading.Lock()

    def know(self, storage):
        """`storage`: torch.UntypedStorage."""
        if storage._cdata not in self._known:
            from torch.multiprocessing.reductions import StorageWeakRef

            with self._lock:
                self._known[storage._cdata] = StorageWeakRef(storage)
                if len(self._known) >= self._clean_at:
                    self._forget_dead()

    _clean_at = 1024

    def holds(self, storage):
        return storage._cdata in self._known

    def live(self):
        """Those that live, as strong references."""
        with self._lock:
            self._forget_dead()
            weak = list(self._known.values())
        found = (self._torch.UntypedStorage._new_with_weak_ptr(w.cdata) for w in weak)
        return [storage for storage in found if storage is not None]

    def _forget_dead(self):
        for key in [key for key, weak in self._known.items() if weak.expired()]:
            del self._known[key]
        self._clean_at = 2 * len(self._known) + 1024
