"""The model of a configuration as a module."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

import torch

from ..config_file import ConfigFile
from ..errors import JoinError
from ..text_proto_reader import Message
from .config_layers import LAYERS, Bag
from .config_losses import Labels, labels_by_name, losses_of
from .embedding import Embedding
from .initial_values import ONES, ZEROS, Initializer, fill, initializer_of

_COMMON = ("name", "inputs", "variables_of")
_MEAN, _VARIANCE = "moving_mean", "moving_variance"


def from_config(config: Union[str, os.PathLike[str], ConfigFile]) -> ConfigModel:
    """The model of a file with a whole configuration, such as "mnist_cnn.textproto". JoinError names what it cannot have."""
    return ConfigModel(config if isinstance(config, ConfigFile) else ConfigFile.read(config))


@dataclass
class _Layer:
    name: str
    kind: str
    message: Message
    inputs: Tuple[str, ...]
    owner: str  # whose variables it has


class MovingAverages(torch.nn.Module):
    """How much of a batch goes into a norm's averages, which are buffers of the model."""

    num_batches_tracked = None

    def __init__(self, layer: str, momentum: float) -> None:
        super().__init__()
        self.names = (f"{layer}/{_MEAN}", f"{layer}/{_VARIANCE}")
        self.momentum = momentum


class ConfigModel(torch.nn.Module):
    """Its parameters and buffers have the names and the layouts of the variables on the servers, "conv_1/kernel" [kernel,
    kernel, channels, filters], and start from the same values, but those that the configuration takes from files.

    A call takes the features in the configuration's order, or by their names: numbers as [batch, …] (images [batch, height,
    width, channels], or with the channels first where that cannot be mistaken), ids [batch], bags as (ids, offsets[,
    weights]) with offsets [batch + 1]. It returns the scores of the loss, and of several losses a list; of
    IN_BATCH_SOFTMAX queries and items. loss() is what the workers minimize."""

    def __init__(self, config: ConfigFile) -> None:
        """JoinError."""
        super().__init__()
        try:
            self._build(config)
        except ValueError as error:
            raise JoinError(str(error)) from error

    def _build(self, config: ConfigFile) -> None:
        self._path = config.path
        model = config.message.message("model")
        self._features = _features_of(model)
        self._dims = config.table_dims()
        self._embeddings = torch.nn.ModuleDict()
        self._norms = torch.nn.ModuleDict()
        named = _named_layers(model)
        if not named:
            raise JoinError(f"{config.path}: model.layers: expected at least one, found none")
        self._losses = losses_of(model, named[-1].name)
        self._layers = _ordered(named, list(self._features), config.path)
        known = {*self._features, *(layer.name for layer in named)}
        for loss in self._losses:
            for name in loss.inputs:
                if name not in known:
                    raise JoinError(f"{config.path}: model.loss: expected the name of a layer, found {name!r}")
        self._make_variables(config)

    def _make_variables(self, config: ConfigFile) -> None:
        """Computes from zeros what shapes there are."""
        groups = config.message.message("initial_values").messages("groups")
        seed = config.message.message("train").integer("seed")
        values: Dict[str, Any] = {name: feature.zeros() for name, feature in self._features.items()}
        with torch.no_grad():
            for layer in self._layers:
                variables = _NewVariables(self, layer, groups, seed)
                try:
                    values[layer.name] = _output(layer, values, variables)
                except (RuntimeError, ValueError, KeyError, IndexError, TypeError) as error:
                    line = " ".join(str(error).split())
                    raise JoinError(f"{config.path}: layer {layer.name}, {layer.kind}: {line}") from error

    def forward(self, *features: Any) -> Any:
        values = self._values_of(features)
        for layer in self._layers:
            values[layer.name] = _output(layer, values, _Variables(self, layer))
        outputs = [tuple(values[name] for name in loss.inputs) for loss in self._losses]
        by_loss = [found[0] if len(found) == 1 else found for found in outputs]
        return by_loss[0] if len(by_loss) == 1 else by_loss

    def loss(self, outputs: Any, labels: Labels) -> torch.Tensor:
        """Of what the model has returned: the sum of the losses' means, each times its weight. `labels`: by their names, or
        the only one."""
        named = labels_by_name(self._losses, labels)
        by_loss = [outputs] if len(self._losses) == 1 else outputs
        means = [loss.mean(output, named) for loss, output in zip(self._losses, by_loss)]
        return sum(means[1:], means[0])

    @property
    def tables(self) -> Dict[str, Embedding]:
        """By the tables' names, for kt.Loader(prefetch=…) and load_rows(); of layers that share a table one."""
        found: Dict[str, Embedding] = {}
        for module in self._embeddings.values():
            assert isinstance(module, Embedding)
            found.setdefault(module.name, module)
        return found

    def _values_of(self, features: Sequence[Any]) -> Dict[str, Any]:
        if len(features) == 1 and isinstance(features[0], Mapping):
            features = [features[0].get(name) for name in self._features]
        if len(features) != len(self._features):
            raise ValueError(f"expected {', '.join(self._features)}, found {len(features)} features")
        return {name: feature.checked(value) for (name, feature), value in zip(self._features.items(), features)}

    def variable(self, name: str) -> torch.Tensor:
        """On the servers it has this name."""
        found = self._parameters.get(name, self._buffers.get(name))
        assert found is not None
        return found

    def norm(self, layer: str) -> MovingAverages:
        found = self._norms[_key(layer)]
        assert isinstance(found, MovingAverages)
        return found

    def embedding(self, layer: str) -> Embedding:
        found = self._embeddings[_key(layer)]
        assert isinstance(found, Embedding)
        return found

    def add_variable(self, name: str, tensor: torch.Tensor, is_trained: bool) -> None:
        if is_trained:
            self.register_parameter(name, torch.nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    def has_variable(self, name: str) -> bool:
        return name in self._parameters or name in self._buffers

    def add_norm(self, layer: str, momentum: float) -> None:
        self._norms[_key(layer)] = MovingAverages(layer, momentum)

    def add_embedding(self, layer: str, table: str, is_bag: bool) -> int:
        """Returns the table's dim."""
        if table not in self._dims:
            raise ValueError(f"table: expected one of model.tables, found {table!r}")
        self._embeddings[_key(layer)] = Embedding(table, self._dims[table], mode="sum" if is_bag else None)
        return self._dims[table]

    def extra_repr(self) -> str:
        return f"{os.path.basename(self._path)}: " + ", ".join(layer.name for layer in self._layers)


class _Variables:
    """Those that a model has."""

    def __init__(self, model: ConfigModel, layer: _Layer) -> None:
        self._model = model
        self._layer = layer
        self.training = model.training

    def parameter(self, part: str, shape: Sequence[int], initializer: Initializer) -> torch.Tensor:
        return self._model.variable(f"{self._layer.owner}/{part}")

    def averages(self, channels: int, momentum: float) -> Tuple[torch.Tensor, torch.Tensor, float]:
        norm = self._model.norm(self._layer.owner)
        mean, variance = (self._model.variable(name) for name in norm.names)
        return mean, variance, norm.momentum

    def rows(self, table: str, ids: Any) -> torch.Tensor:
        embedding = self._model.embedding(self._layer.name)
        if isinstance(ids, Bag):
            found: torch.Tensor = embedding(ids.ids, ids.offsets[:-1], ids.weights)
        else:
            found = embedding(ids)
        return found


class _NewVariables(_Variables):
    """Makes them when a layer first asks for them."""

    def __init__(self, model: ConfigModel, layer: _Layer, groups: Sequence[Message], seed: int) -> None:
        super().__init__(model, layer)
        self._groups, self._seed = groups, seed
        self.training = False

    def parameter(self, part: str, shape: Sequence[int], initializer: Initializer) -> torch.Tensor:
        return self._made(part, shape, initializer, is_trained=True)

    def averages(self, channels: int, momentum: float) -> Tuple[torch.Tensor, torch.Tensor, float]:
        mean = self._made(_MEAN, (channels,), ZEROS, is_trained=False)
        variance = self._made(_VARIANCE, (channels,), ONES, is_trained=False)
        self._model.add_norm(self._layer.owner, momentum)
        return mean, variance, momentum

    def rows(self, table: str, ids: Any) -> torch.Tensor:
        dim = self._model.add_embedding(self._layer.name, table, isinstance(ids, Bag))
        return torch.zeros(_RECORDS, dim)

    def _made(self, part: str, shape: Sequence[int], own: Initializer, is_trained: bool) -> torch.Tensor:
        name = f"{self._layer.owner}/{part}"
        if not self._model.has_variable(name):
            tensor = torch.empty(tuple(shape))
            fill(tensor, name, self._seed, initializer_of(self._groups, name, shape, own))
            self._model.add_variable(name, tensor, is_trained)
        found = self._model.variable(name)
        if tuple(found.shape) != tuple(shape):
            raise ValueError(f"{name}: expected {list(shape)}, found {list(found.shape)}")
        return found


# Of the batch of zeros that says what shapes there are.
_RECORDS = 2


class _Feature:
    def __init__(self, name: str, kind: str, message: Message, shape: Sequence[int]) -> None:
        self._name, self._kind, self._shape = name, kind, tuple(shape)
        self._weighted = message.flag("weighted")

    def zeros(self) -> Any:
        ids = torch.zeros(_RECORDS, dtype=torch.int64)
        if self._kind == "bag":
            return Bag(ids, torch.arange(_RECORDS + 1), torch.zeros(_RECORDS) if self._weighted else None)
        return ids if self._kind == "id" else torch.zeros(_RECORDS, *self._shape)

    def checked(self, value: Any) -> Any:
        """ValueError."""
        if self._kind == "bag":
            return self._bag(value)
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{self._name}: expected a tensor, found {type(value).__name__}")
        if self._kind == "id":
            if value.dim() != 1 or value.is_floating_point():
                raise ValueError(f"{self._name}: expected ids [batch], found {list(value.shape)} of {value.dtype}")
            return value
        found = tuple(value.shape[1:])
        if found == self._shape:
            return value
        if len(found) == 3 and len(self._shape) == 3 and (*found[1:], found[0]) == self._shape:
            return value.permute(0, 2, 3, 1)
        raise ValueError(
            f"{self._name}: expected [batch, {', '.join(map(str, self._shape))}], found {list(value.shape)}"
        )

    def _bag(self, value: Any) -> Bag:
        if isinstance(value, torch.Tensor) or not isinstance(value, Sequence):
            raise ValueError(f"{self._name}: expected (ids, offsets), found {type(value).__name__}")
        if len(value) != 2 + self._weighted:
            wanted = "(ids, offsets, weights)" if self._weighted else "(ids, offsets)"
            raise ValueError(f"{self._name}: expected {wanted}, found {len(value)} tensors")
        bag = Bag(*value)
        if bag.offsets.dim() != 1 or len(bag.offsets) == 0 or int(bag.offsets[-1]) != len(bag.ids):
            raise ValueError(f"{self._name}: expected offsets [batch + 1] up to {len(bag.ids)}, found {bag.offsets}")
        return bag


def _features_of(model: Message) -> Dict[str, _Feature]:
    if "features" not in model:
        return {"features": _Feature("features", "dense", model, model.integers("input_shape"))}
    features = {}
    for message in model.messages("features"):
        kinds = [kind for kind in ("dense", "id", "bag") if kind in message]
        if not kinds:
            raise JoinError(f"{message.place}: expected a kind (dense, id or bag), found none")
        own = message.message(kinds[0])
        name = message.text("name")
        features[name] = _Feature(name, kinds[0], own, own.integers("shape"))
    return features


def _named_layers(model: Message) -> List[_Layer]:
    """In the order of the list; a layer without a name has its kind and number, without inputs what is before it."""
    counts: Dict[str, int] = {}
    layers: List[_Layer] = []
    for position, message in enumerate(model.messages("layers")):
        kinds = [name for name in message.fields if name not in _COMMON]
        if len(kinds) != 1 or kinds[0] not in LAYERS:
            raise JoinError(
                f"{message.place}: model.layers[{position}]: expected one of {', '.join(LAYERS)}, "
                f"found {', '.join(kinds) or 'none'}"
            )
        kind = kinds[0]
        counts[kind] = counts.get(kind, 0) + 1
        name = message.text("name") or f"{kind}_{counts[kind]}"
        if "." in name:
            raise JoinError(
                f'{message.place}: model.layers[{position}].name: expected a name without ".", which PyTorch cannot '
                f"have in one, found {name}"
            )
        before = layers[-1].name if layers else next(iter(_features_of(model)))
        inputs = tuple(message.texts("inputs")) or (before,)
        layers.append(_Layer(name, kind, message.message(kind), inputs, message.text("variables_of") or name))
    return layers


def _ordered(layers: Sequence[_Layer], features: Sequence[str], path: str) -> List[_Layer]:
    """So that each comes behind those whose outputs, and whose variables, it takes."""
    known, waiting, ordered = set(features), list(layers), []
    while waiting:
        ready = next((layer for layer in waiting if _is_ready(layer, known)), None)
        if ready is None:
            first = waiting[0]
            raise JoinError(f"{path}: layer {first.name}: expected inputs that are there and no cycle, found "
                            f"{', '.join(first.inputs)}")  # fmt: skip
        ordered.append(ready)
        known.add(ready.name)
        waiting.remove(ready)
    return ordered


def _is_ready(layer: _Layer, known: Any) -> bool:
    return all(name in known for name in layer.inputs) and (layer.owner == layer.name or layer.owner in known)


def _output(layer: _Layer, values: Mapping[str, Any], variables: _Variables) -> Any:
    return LAYERS[layer.kind](layer.message, [values[name] for name in layer.inputs], variables)


def _key(layer: str) -> str:
    """Of a ModuleDict, some of whose own names a layer may have."""
    return f"of {layer}"
