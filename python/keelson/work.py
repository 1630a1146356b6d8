"""The tickets of a script: the one that it computes, and those that are ahead."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Callable, ContextManager, Mapping, Optional, Sequence

from .lent_memory import LentMemory
from .rows import Rows, RowSet, Wanted
from .session import Session, Ticket


class Work:
    """Tickets are begun and finished in the order in which they were taken."""

    def __init__(self, session: Session, tables: Optional[Mapping[str, int]] = None) -> None:
        """`tables`: the dims of those that the job has."""
        self._session = session
        self.rows = Rows(session, tables or {})
        # Those that came with the values of the step before, for the next ticket.
        self._rows_ahead: Optional[RowSet] = None
        # What the ticket behind the current one needs, where that is known.
        self.wanted_ahead: Optional[Wanted] = None
        self._ahead = 0
        self._last_loss = math.nan  # There was no step.
        self._has_offered = False  # Of the current ticket.
        self._began = self._ended = time.monotonic()
        self._input_seconds = 0.0
        self._seen_version = -1
        # Called when the values have become others, before anybody computes from them, and after each step.
        self.on_new_values: Callable[[], None] = lambda: None
        # Where the script is watched; None: it is not.
        self.lent_memory: Optional[LentMemory] = None
        # The one whose gradients are to be computed now.
        self.current: Optional[Ticket] = None

    @property
    def is_over(self) -> bool:
        """The job has no more for this script, and all that it took is finished."""
        return self._session.is_over and not self.has_tickets

    @property
    def global_step(self) -> int:
        return self._session.step

    def take(self, patience: Optional[float] = None) -> Optional[Ticket]:
        """The next one, once it is there; with `patience`, only if it is there by then. None: there is none (now).

        The chief may wait for a ticket that is not finished before it hands out another one: who has such tickets must
        not wait without a bound."""
        ticket = self._session.take(patience)
        if ticket is not None:
            self._ahead += 1
        return ticket

    @property
    def has_tickets(self) -> bool:
        return self._ahead > 0 or self.current is not None

    def begin(self, ticket: Ticket, wanted: Optional[Wanted] = None) -> bool:
        """From now on the values are those to compute from, and prefetched() has the rows that are wanted. False: another
        worker has it now."""
        self._ahead -= 1
        with self._lent_to_agent():
            is_valid = self._session.begin(ticket) if wanted is None else self._begin_with_rows(ticket, wanted)
        if not is_valid:
            return False
        self.current = ticket
        if self._seen_version != self._session.values_version:
            self._take_values()
        self._began = time.monotonic()
        self._input_seconds = self._began - self._ended
        return True

    def offer(self, variables: Sequence[int]) -> None:
        """The gradients of these variables, by their positions, are in the memory, and will not change before push()."""
        if self.current is not None:
            self._has_offered = True
            self._session.offer(self.current, variables)

    def prefetched(self) -> Optional[RowSet]:
        """The rows that were wanted of the current ticket; once. They belong to who takes them, until it releases them."""
        rows, self._rows_ahead = self._rows_ahead, None
        return rows

    def _begin_with_rows(self, ticket: Ticket, wanted: Wanted) -> bool:
        if self._session.has_values_for(ticket):
            if self._rows_ahead is None:
                self._rows_ahead = self.rows.fetch(wanted)
            return True
        self._drop_rows()  # They are as old as the values.
        rows = self.rows.want_ahead(wanted)
        is_valid = self._session.ask_values(ticket)
        self._rows_ahead = rows()
        if not is_valid:
            self._drop_rows()
        return is_valid

    def _drop_rows(self) -> None:
        rows = self.prefetched()
        if rows is not None:
            self.rows.release([rows])

    def push(self, loss: float, rows: Sequence[RowSet] = (), absent: Sequence[int] = ()) -> bool:
        """The gradients of the current ticket are in the memory, but for these variables that have none, by their positions,
        and those of these rows. False: they do not count."""
        with self._lent_to_agent(sends_gradients=True, absent=absent):
            ticket = self._finished()
            self._last_loss = loss
            wanted, self.wanted_ahead = self.wanted_ahead, None
            ahead = None if wanted is None else self.rows.want_ahead(wanted)
            spaces = [row_set.space.number for row_set in rows]
            compute_seconds = time.monotonic() - self._began
            counts = self._session.push(ticket, loss, compute_seconds, self._input_seconds, spaces, absent)
            if ahead is not None:
                self._rows_ahead = ahead()
        self._take_values()
        self._ended = time.monotonic()
        return counts

    def skip(self) -> None:
        """The current ticket is done without gradients; its loss is taken to be that of this script's step before;
        where there was none, it has none."""
        self.wanted_ahead = None
        if self._has_offered:
            raise RuntimeError(
                "expected a step for the batch whose gradients were sent during backward, found none (GradScaler leaves it "
                "out when a gradient overflows): use overlap=False"
            )
        with self._lent_to_agent():
            self._session.skip(self._finished(), self._last_loss)
        self._take_values()
        self._ended = time.monotonic()

    def _lent_to_agent(self, sends_gradients: bool = False, absent: Sequence[int] = ()) -> ContextManager[None]:
        """RuntimeError: the script has written to memory that was not its to write; nothing was sent."""
        if self.lent_memory is None:
            return contextlib.nullcontext()
        return self.lent_memory.lent_to_agent(sends_gradients, absent)

    def _take_values(self) -> None:
        self._seen_version = self._session.values_version
        self.on_new_values()

    def _finished(self) -> Ticket:
        ticket, self.current = self.current, None
        self._has_offered = False
        if ticket is None:
            raise RuntimeError("expected one push for each step, found another one")
        return ticket
