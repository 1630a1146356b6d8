"""The batches of a job's tickets, by PyTorch's DataLoader."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Iterator, List, Mapping, Optional

import torch.utils.data

from ..job import Job
from ..rows import Wanted
from ..session import Ticket
from ..work import Work
from .batches import make_batches
from .embedding import Embedding, bytes_of, ids_by_table, of_tables

# How long a ticket is waited for while others are under way, where it need not wait for these.
_PATIENCE_SECONDS = 0.02
_END = object()


class Loader:
    """Yields the batches that the chief gives to this script, until the job has no more. Each is followed by one step of
    keelson.torch.Optimizer; a batch without is done without an update.

    The arguments are DataLoader's. `dataset` has the job's records by their positions; where it has a method
    batch(positions), and there is no collate_fn, that makes the batches. `prefetch`: of a batch the ids that its embeddings
    will look up; their rows come with the values, before the batch, in place of one wait for each look-up."""

    def __init__(
        self,
        job: Job,
        dataset: Any,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        prefetch_factor: int = 2,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        prefetch: Optional[Callable[[Any], Mapping[Embedding, torch.Tensor]]] = None,
    ) -> None:
        if len(dataset) != job.settings.records:
            raise ValueError(f"dataset: expected the job's {job.settings.records} records, found {len(dataset)}")
        self._job = job
        self._sampler = _TicketSampler(job)
        self._batches: Optional[Iterator[Any]] = None
        self._prefetch = prefetch
        # Taken ahead of its step, to know what it needs.
        self._ahead: Optional[_Batch] = None
        self._loader = make_batches(
            dataset,
            self._sampler,
            num_workers,
            collate_fn,
            prefetch_factor=prefetch_factor,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
        )

    def __iter__(self) -> Iterator[Any]:
        """A loop that was left is gone on with by the next one."""
        work = self._job.work
        while True:
            if work.current is not None:
                work.skip()
            batch, self._ahead = self._ahead or self._next(), None
            if batch is not None:
                if self._begin(batch):
                    yield batch.content
            elif work.is_over:
                return

    def _next(self) -> Optional[_Batch]:
        """None: there is no ticket for the moment."""
        if self._batches is None:
            self._batches = iter(self._loader)
        content = next(self._batches, _END)
        if content is _END:
            self._batches = None
            return None
        ids = {} if self._prefetch is None else of_tables(self._prefetch(content))
        return _Batch(content, self._sampler.given.popleft(), ids, ids_by_table(ids))

    def _begin(self, batch: _Batch) -> bool:
        work = self._job.work
        if not batch.ids:
            return work.begin(batch.ticket)
        if not work.begin(batch.ticket, batch.wanted()):
            return False
        next(iter(batch.modules)).tables.take_prefetched(batch.ids)
        # A round may wait for this batch before it has another one.
        if not batch.ticket.must_ask:
            self._ahead = self._next()
            work.wanted_ahead = self._ahead.wanted() if self._ahead is not None and self._ahead.ids else None
        return True


@dataclass
class _Batch:
    content: Any
    ticket: Ticket
    modules: Mapping[Embedding, torch.Tensor]
    ids: Mapping[str, torch.Tensor]  # by table

    def wanted(self) -> Wanted:
        return {name: bytes_of(ids) for name, ids in self.ids.items()}


class _TicketSampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """Of batches: those of the tickets that are there. DataLoader asks it from the thread of the training loop, so it does
    not wait while there are tickets to step, for which the chief may wait."""

    def __init__(self, job: Job) -> None:
        self._job = job
        # In the order in which DataLoader yields their batches.
        self.given: Deque[Ticket] = deque()

    def __iter__(self) -> Iterator[List[int]]:
        work: Work = self._job.work
        must_wait_for_others = False
        while True:
            patience = (0.0 if must_wait_for_others else _PATIENCE_SECONDS) if work.has_tickets else None
            ticket = work.take(patience)
            if ticket is None:
                return
            must_wait_for_others = ticket.must_ask
            self.given.append(ticket)
            yield ticket.records.tolist()
