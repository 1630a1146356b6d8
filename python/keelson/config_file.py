"""A job's configuration that a file has: one of a model of Keelson's layers, which C++ workers compute too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Dict, Optional, Union

from .config import JobSettings
from .errors import JoinError
from .pod_paths import local_path
from .settings import Async, Checkpoint, Evaluation, Transfer, default_consistency
from .text_proto_reader import Message, parse


@dataclass(frozen=True)
class ConfigFile:
    """A TrainConfig. Its programs check it; here is what scripts need of it."""

    path: str
    text: str
    message: Message
    data_dir: Optional[str] = None  # of a chief that the script starts

    @classmethod
    def read(
        cls, path: Union[str, os.PathLike[str]], data_dir: Union[str, os.PathLike[str], None] = None
    ) -> ConfigFile:
        """JoinError: it cannot be read, or is of a model of a script's own."""
        path = os.path.abspath(local_path(path))
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            data_dir = None if data_dir is None else os.path.abspath(local_path(data_dir))
            config = cls(path, text, parse(text, path), data_dir)
            if "external" in config.message.message("model"):
                raise JoinError(f"{path}: model: expected layers, found external: its script has the model")
            return config
        except (OSError, ValueError) as error:
            raise JoinError(f"config: {error}" if isinstance(error, OSError) else str(error)) from error

    def settings(self, records: int, model_dir: Union[str, os.PathLike[str], None]) -> JobSettings:
        """JoinError."""
        try:
            if "stream" in self.message.message("data"):
                raise JoinError(f"{self.path}: data.stream: expected records whose number is known, found a stream")
            train = self.message.message("train")
            reject = self.message.message("transfer").flag("reject_non_finite")
            has_mode = "mode" in self.message.message("consistency")
            given = model_dir or self.message.message("checkpoint").text("model_dir") or None
            return JobSettings(
                name=self.message.message("model").text("name") or os.path.basename(self.path),
                records=records,
                batch_size=train.integer("batch_size"),
                epochs=train.integer("epochs") or None,
                max_steps=train.integer("max_steps") or None,
                consistency=Async() if has_mode else default_consistency(),
                transfer=Transfer(reject_non_finite=reject),
                checkpoint=Checkpoint(),
                evaluation=Evaluation(),
                model_dir=None if given is None else os.path.abspath(local_path(given)),
                initial=None,
                seed=train.integer("seed"),
                config=self,
            )
        except ValueError as error:
            raise JoinError(str(error)) from error

    def table_dims(self) -> Dict[str, int]:
        """In the order of the configuration. ValueError."""
        tables = self.message.message("model").messages("tables")
        return {table.text("name"): table.integer("dim") for table in tables}

    def places_on_workers(self) -> bool:
        """ValueError."""
        groups = self.message.message("placement").messages("groups")
        return any(group.text("on") == "WORKERS" for group in groups)

    def bounds_gradients(self) -> bool:
        """The norm of all together, which is the agent's work. ValueError."""
        return self.message.message("optimizer").number("clip_global_norm") != 0

    def learning_rate(self) -> float:
        """ValueError."""
        return self.message.message("learning_rate").number("base")
