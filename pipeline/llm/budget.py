"""A hard limit on money: what a call may cost at most is set aside before it is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pipeline.llm.faults import FaultKind, ModelFault


@dataclass(slots=True)
class Reservation:
    """Money set aside for one call; set `spent` to what it really cost."""

    most: float
    spent: float | None = None


class Budget:
    """US dollars that may be spent, and those that are spent or set aside.

    `limit` None: no limit. A call whose most expensive outcome does not fit waits while other calls are in flight
    (they usually cost less than was set aside), and is refused when none are. So the limit is never passed.
    """

    def __init__(self, limit: float | None = None, *, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = 0.0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve(self, most: float | None) -> AsyncGenerator[Reservation]:
        """Set `most` aside during a call. Raises ModelFault where it does not fit, or has no known price.

        A reservation left without `spent` (the call failed before anything was said) costs nothing.
        """
        async with self._changed:
            while not self._fits(most):
                if not self.reserved:
                    raise self._refusal(most)
                await self._changed.wait()
            reservation = Reservation(most or 0.0)
            self.reserved += reservation.most
        try:
            yield reservation
        finally:
            async with self._changed:
                # A float sum drifts: with nothing in flight it is zero by definition.
                self.reserved = max(0.0, self.reserved - reservation.most)
                if self.reserved < 1e-9:
                    self.reserved = 0.0
                self.spent += reservation.spent or 0.0
                self._changed.notify_all()

    async def raise_to(self, limit: float | None) -> None:
        """Change the limit; calls that wait for money go on where it now suffices."""
        async with self._changed:
            self.limit = limit
            self._changed.notify_all()

    def _fits(self, most: float | None) -> bool:
        if self.limit is None:
            return True
        return most is not None and self.spent + self.reserved + most <= self.limit

    def _refusal(self, most: float | None) -> ModelFault:
        if most is None:
            return ModelFault(
                FaultKind.budget,
                f"there is a budget of ${self.limit:g} and no price for this model.",
                "Give prices in its profile, or run without a budget.",
            )
        return ModelFault(
            FaultKind.budget,
            f"the budget of ${self.limit:g} is used up: ${self.spent:.4f} is spent and the next call may cost up to "
            f"${most:.4f}.",
            "Raise the budget to go on.",
        )
