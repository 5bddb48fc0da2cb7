"""Attributes replaced for a while, put back in the reverse order."""

from __future__ import annotations

_ABSENT = object()


class Patches:
    """Remembers what it replaces; `undo` puts everything back."""

    def __init__(self):
        self._replaced = []

    def set(self, owner, name, value):
        """`owner.name = value`; what `owner` only inherited is inherited again after `undo`."""
        self._replaced.append((setattr, delattr, owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def set_item(self, mapping, key, value):
        self._replaced.append((_set_item, _delete_item, mapping, key, mapping.get(key, _ABSENT)))
        mapping[key] = value

    def call(self, undo):
        """`undo()` is called in its turn."""
        self._replaced.append((None, undo, None, None, None))

    def undo(self):
        while self._replaced:
            put, remove, owner, name, old = self._replaced.pop()
            if put is None:
                remove()
            elif old is _ABSENT:
                remove(owner, name)
            else:
                put(owner, name, old)


def _set_item(mapping, key, value):
    mapping[key] = value


def _delete_item(mapping, key):
    del mapping[key]
