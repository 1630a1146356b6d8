"""A dataset's batches, of positions that others choose: by PyTorch's DataLoader, or in this process."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, List, Optional

import torch.utils.data


def make_batches(
    dataset: Any,
    positions: Iterable[List[int]],
    num_workers: int,
    collate_fn: Optional[Callable[[List[Any]], Any]],
    **of_loader: Any,
) -> Iterable[Any]:
    """The batch of each list of positions, in their order, anew with each iter(). The arguments are DataLoader's; `of_loader`
    is for its workers. Where `dataset` has a method batch(positions), and there is no collate_fn, that makes the batches."""
    batches = _Batches(dataset, collate_fn)
    if not num_workers:
        # DataLoader would take longer for what it does around a batch than for many a batch.
        return _InThisProcess(batches, positions)
    loader: Any = torch.utils.data.DataLoader(
        batches,
        batch_size=None,
        sampler=positions,
        num_workers=num_workers,
        collate_fn=_as_it_is,
        persistent_workers=True,
        **of_loader,
    )
    return loader  # type: ignore[no-any-return]


class _Batches(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """The batch of each list of positions."""

    def __init__(self, dataset: Any, collate_fn: Optional[Callable[[List[Any]], Any]]) -> None:
        self._dataset = dataset
        self._makes_batches = collate_fn is None and hasattr(dataset, "batch")
        self._collate = collate_fn or torch.utils.data.default_collate

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, positions: List[int]) -> Any:
        if self._makes_batches:
            return torch.utils.data.default_convert(self._dataset.batch(positions))
        if hasattr(self._dataset, "__getitems__"):
            return self._collate(self._dataset.__getitems__(positions))
        return self._collate([self._dataset[position] for position in positions])


class _InThisProcess:
    """Each batch is made when it is asked for."""

    def __init__(self, batches: _Batches, positions: Iterable[List[int]]) -> None:
        self._batches = batches
        self._positions = positions

    def __iter__(self) -> Iterator[Any]:
        return (self._batches[positions] for positions in self._positions)


def _as_it_is(batch: Any) -> Any:
    return batch
