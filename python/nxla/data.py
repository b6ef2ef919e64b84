"""Batches of training data from arrays, datasets and iterables.

>>> import nxla as nx
>>> x, y = nx.reshape(nx.arange(10), (5, 2)), nx.arange(5)
>>> for batch, labels in nx.data.batches((x, y), 2):
...     print(batch.shape, labels.tolist())
(2, 2) [0, 1]
(2, 2) [2, 3]
(1, 2) [4]
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator

from nxla import _core, _hints, tree
from nxla._values import (
    as_bool,
    as_count,
    as_int,
    kind_of,
    new_tensor,
    new_tensors,
    require_callable,
)
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import DeviceLike

__all__ = ["Batches", "batches"]


class Batches:
    """An iterable of batches, which starts anew for each loop; made by `batches`."""

    def __init__(
        self,
        source: _Arrays | _Stream,
        size: int,
        *,
        shuffle: bool,
        seed: int,
        drop_last: bool,
        prefetch: int,
        device: DeviceLike | None,
    ) -> None:
        self._source = source
        self._size = size
        self._shuffle = shuffle
        self._seed = seed
        self._drop_last = drop_last
        self._prefetch = prefetch
        self._device = device
        self._epoch = 0

    def __len__(self) -> int:
        """Return the number of batches, if the number of examples is known."""
        count = self._source.count
        if count is None:
            raise TypeError("len: source: must have a length; got an iterable")
        return int(count // self._size if self._drop_last else -(-count // self._size))

    def __iter__(self) -> Iterator[Any]:
        """Return the batches of one epoch. Each epoch has another order."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        found = self._batches(epoch)
        return _Prefetched(found, self._prefetch) if self._prefetch else found

    def _batches(self, epoch: int) -> Iterator[Any]:
        for chosen in self._source.parts(self._order(epoch), self._size):
            if len(chosen) < self._size and self._drop_last:
                return
            yield self._place(self._source.batch(chosen))

    def _order(self, epoch: int) -> Tensor | None:
        """Return the order of the examples; None for the original order."""
        count = self._source.count
        if not self._shuffle or count is None:
            return None
        from nxla.random import fold_in, key, permutation

        return permutation(fold_in(key(self._seed), epoch), count).value

    def _place(self, batch: Any) -> Any:
        if self._device is None:
            return batch
        from nxla.placement import device_put

        return device_put(batch, self._device)


class _Arrays:
    """A container of arrays whose first axis has the examples."""

    def __init__(self, container: Any) -> None:
        leaves, self._structure = tree.flatten(container)
        if not leaves:
            kind = kind_of(container)
            raise ArgumentError(f"batches: source: must contain arrays or examples; got {kind}")
        self._leaves = [new_tensor(leaf) for leaf in leaves]
        shapes = [leaf.shape for leaf in self._leaves]
        counts = {shape[:1] for shape in shapes}
        if len(counts) != 1 or counts == {()}:
            raise ShapeError(
                f"batches: source: arrays must have the same first axis; got shapes {shapes}"
            )
        self.count: int | None = shapes[0][0]

    def parts(self, order: Tensor | None, size: int) -> Iterator[Any]:
        """Return the indices of each batch: a range, or a part of the order."""
        indices = range(self.count or 0) if order is None else order
        for start in range(0, len(indices), size):
            yield indices[start : start + size]

    def batch(self, chosen: Any) -> Any:
        if isinstance(chosen, range):
            taken = [leaf[chosen.start : chosen.stop] for leaf in self._leaves]
        else:
            taken = [_core.take(leaf, chosen, 0) for leaf in self._leaves]
        return self._structure.unflatten(taken)


class _Dataset(_Arrays):
    """An object with a length and examples by index."""

    def __init__(
        self, examples: Any, take: Callable[[Any], Any], collate: Callable[[list[Any]], Any]
    ) -> None:
        self._examples = examples
        self._take = take
        self._collate = collate
        self.count = len(examples)

    def batch(self, chosen: Any) -> Any:
        indices = chosen if isinstance(chosen, range) else chosen.tolist()
        return self._collate([self._take(self._examples[index]) for index in indices])


class _Stream:
    """An iterable of examples without a length."""

    count = None

    def __init__(
        self,
        examples: Iterable[Any],
        take: Callable[[Any], Any],
        collate: Callable[[list[Any]], Any],
    ) -> None:
        self._examples = examples
        self._take = take
        self._collate = collate
        self._started = False

    def start(self) -> Iterator[Any]:
        """Return the examples for another loop; an iterator is used up after the first."""
        examples = iter(self._examples)
        if self._started and examples is self._examples:
            raise ArgumentError(
                "batches: source: must be iterable again for a second loop; got "
                f"{kind_of(examples)}; pass a list, or an iterable that can be iterated again"
            )
        self._started = True
        return examples

    def parts(self, order: Tensor | None, size: int) -> Iterator[Any]:
        del order
        examples = map(self._take, self.start())
        while chosen := list(itertools.islice(examples, size)):
            yield chosen

    def batch(self, chosen: Any) -> Any:
        return self._collate(chosen)


def _stack(examples: list[Any]) -> Any:
    """Stack the tensors of examples, which have the same containers."""
    return tree.map(lambda *parts: _core.stack(list(parts)), *examples)


class _Prefetched:
    """An iterator whose items another thread computes in advance."""

    _END = object()

    def __init__(self, items: Iterator[Any], count: int) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(count)
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=_fill, args=(items, self._queue, self._stopped, _Settings()), daemon=True
        )
        self._thread.start()

    def __iter__(self) -> _Prefetched:
        return self

    def __next__(self) -> Any:
        if self._stopped.is_set():
            raise StopIteration
        item, error = self._queue.get()
        if error is not None:
            self.close()
            raise error
        if item is self._END:
            self.close()
            raise StopIteration
        return item

    def close(self) -> None:
        """Stop the thread; it ends after the batch that it is computing."""
        self._stopped.set()

    def __del__(self) -> None:
        self.close()


class _Settings:
    """The settings of the thread that creates the object."""

    def __init__(self) -> None:
        self._options = _core.get_default_options() if _core.has_own_options() else None
        self._debug_nans = _core.set_debug_nans(False)
        _core.set_debug_nans(self._debug_nans)

    def apply(self) -> None:
        """Set the settings in the current thread."""
        _core.replace_default_options(self._options)
        _core.set_debug_nans(self._debug_nans)


def _fill(
    items: Iterator[Any],
    results: queue.Queue[Any],
    stopped: threading.Event,
    settings: _Settings,
) -> None:
    """Put items into a queue until the reader stops.

    This is not a method, because a thread that runs a method would keep the iterator alive, and
    the iterator would never stop the thread.
    """

    def put(entry: tuple[Any, BaseException | None]) -> bool:
        while not stopped.is_set():
            try:
                results.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    try:
        settings.apply()
        for item in items:
            if not put((item, None)):
                return
    except BaseException as error:  # raised again in the reader's thread
        put((None, error))
    else:
        put((_Prefetched._END, None))


def batches(
    source: Any,
    batch_size: int,
    /,
    *,
    shuffle: bool = False,
    seed: int = 0,
    drop_last: bool = False,
    prefetch: int = 2,
    device: DeviceLike | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
) -> Batches:
    """Return an iterable of batches.

    Parameters
    ----------
    source : container of arrays, dataset or iterable
        * Tensors or arrays, or a tuple, a dict or another container of them: their first axis has
          the examples.
        * A dataset with ``len(source)`` and ``source[index]``, such as PyTorch's, or a list of
          examples: each example is a container of arrays or numbers.
        * Any other iterable of examples. An iterator, such as a generator, has one loop.
    batch_size : int
        The number of examples in a batch.
    shuffle : bool
        If True, each loop has another random order of all examples. An iterable cannot be shuffled.
    seed : int
        The seed of the order. Two iterables with the same seed have the same orders.
    drop_last : bool
        If True, a last batch with fewer examples is omitted.
    prefetch : int
        The number of batches that a thread prepares in advance; 0 for none. The thread has the
        default options and `nxla.debug_nans` of the thread that starts the loop.
    device : Device or str, optional
        The device to which batches are copied, in the thread.
    collate : callable, optional
        A function from a list of examples to a batch; by default their arrays are copied and
        stacked. With a function, a source must not reuse the arrays of an example for the next
        one. A dict or another container of arrays is sliced and has no such function.

    Returns
    -------
    Batches
        An iterable, with a length if the number of examples is known.

    Raises
    ------
    ArgumentError
        If the batch size is not positive, `prefetch` is negative, an iterable is to be shuffled, or
        `collate` is passed with a container of arrays. A second loop over an iterator raises it.
    OptionError
        If no device has the name `device`.
    ShapeError
        If the arrays have different first axes.

    Examples
    --------
    >>> import nxla as nx
    >>> loader = nx.data.batches({"x": nx.arange(6)}, 4, shuffle=True, seed=1, drop_last=True)
    >>> len(loader), [batch["x"].shape for batch in loader]
    (1, [(4,)])
    >>> examples = ((i, nx.full(2, i)) for i in range(3))
    >>> [y.tolist() for x, y in nx.data.batches(examples, 2)]
    [[[0, 0], [1, 1]], [[2, 2]]]
    """
    batch_size = as_count("batches", "batch_size", batch_size, 1)
    prefetch = as_count("batches", "prefetch", prefetch)
    shuffle = as_bool("batches", "shuffle", shuffle)
    seed = as_int("batches", "seed", seed)
    drop_last = as_bool("batches", "drop_last", drop_last)
    if device is not None:
        device = _core.Device(device)
    if collate is not None:
        require_callable("batches", "collate", collate)
    examples = _source_of(source, collate)
    if shuffle and examples.count is None:
        raise ArgumentError(
            "batches: shuffle: must be False for an iterable without a length; pass a list or an "
            "array"
        )
    return Batches(
        examples,
        batch_size,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
        prefetch=prefetch,
        device=device,
    )


def _source_of(source: Any, collate: Callable[[list[Any]], Any] | None) -> _Arrays | _Stream:
    """Return the examples of a source, with their function from examples to a batch."""
    is_container = isinstance(source, (tuple, dict)) or hasattr(source, "__dlpack__")
    if is_container and collate is None:
        return _Arrays(source)
    is_dataset = hasattr(source, "__getitem__") and hasattr(source, "__len__")
    has_arrays = isinstance(source, tuple) and any(hasattr(x, "__dlpack__") for x in source)
    is_iterable = is_dataset or isinstance(source, Iterable)
    if collate is not None and (isinstance(source, dict) or has_arrays or not is_iterable):
        raise ArgumentError(
            "batches: collate: must be None for a container of arrays, which are not collated; got "
            f"{kind_of(source)}; pass a list of examples, or a dataset"
        )
    # A source may fill the same arrays with its next example, so each example is copied first.
    take = new_tensors if collate is None else lambda example: example
    collate = _stack if collate is None else collate
    if is_dataset:
        return _Dataset(source, take, collate)
    if is_iterable:
        return _Stream(source, take, collate)
    return _Arrays(source)


_hints.install(globals())
_hints.install_missing_names(globals())
