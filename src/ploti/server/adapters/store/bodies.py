"""Bodies of events that were read lately: one stands behind the events of many logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from ploti.server.eventlog.render import Body

_MOST = 16 << 20
"""Characters of bodies that are remembered."""

Load = Callable[[Sequence[int]], Iterable[tuple[int, Body]]]


class Bodies:
    """Remembers bodies by their numbers, which are never given twice; for any thread.

    Only what a reading transaction saw may come in: another's may still be rolled back.
    """

    def __init__(self) -> None:
        self._known: dict[int, Body] = {}
        self._size = 0
        self._filling = threading.Lock()

    def of(self, numbers: Sequence[int], *, load: Load) -> list[Body]:
        """The bodies of these numbers, in their order; those not known are loaded."""
        known = self._known
        found = self.known(numbers)
        if found is None:
            loaded = dict(load([number for number in numbers if number not in known]))
            self._keep(loaded)
            found = [known.get(number) or loaded[number] for number in numbers]
        return found

    def known(self, numbers: Sequence[int]) -> list[Body] | None:
        """The bodies of these numbers, unless one was not read lately."""
        try:
            return [*map(self._known.__getitem__, numbers)]
        except KeyError:
            return None

    def _keep(self, loaded: dict[int, Body]) -> None:
        size = sum(len(body.data) for body in loaded.values())
        with self._filling:
            if self._size + size > _MOST:
                self._known, self._size = {}, 0
            self._known.update(loaded)
            self._size += size
