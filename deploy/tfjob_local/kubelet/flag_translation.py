"""Arguments of classic trainers -> flags of Keelson's programs.

A flag of the same name or the same meaning is kept where its value can be translated, everything else is
dropped with a warning. Of several flags with the same meaning, Keelson's own name wins, then the order of
ALIASES, then the later one, then a variable of the environment, as TF_TRAIN_STEPS for --train_steps."""

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from .flag_values import Surroundings, translate_value
from .program_flags import Flag

# The group of flags with the addresses of other replicas, for which a job of the operator has TF_CONFIG.
_CLUSTER = "Cluster"
# Flags of an evaluator without a job.
_SERVING = frozenset({"serve_only", "runs"})

# Keelson's flag -> the names that trainers gave the same thing.
ALIASES: Dict[str, Tuple[str, ...]] = {
    "batch_size": ("train_batch_size", "training_batch_size", "batch"),
    "training_steps": (
        "train_steps",
        "max_steps",
        "num_steps",
        "num_train_steps",
        "max_train_steps",
        "total_steps",
        "steps",
    ),
    "epochs": ("num_epochs", "num_train_epochs", "train_epochs", "max_epochs", "nb_epochs"),
    "learning_rate": ("lr", "initial_learning_rate", "base_lr", "base_learning_rate"),
    "model_dir": ("job_dir", "output_dir", "checkpoint_dir", "save_dir", "train_dir", "log_dir", "logdir"),
    "data_dir": ("input_dir", "dataset_dir", "train_data_dir", "data_path"),
    "seed": ("random_seed", "tf_random_seed"),
}
_OWN_NAME = {alias: flag for flag, aliases in ALIASES.items() for alias in aliases}
# What trainers that read their hyper-parameters from the environment put before their names.
_VARIABLE_PREFIX = "TF_"


@dataclass(frozen=True)
class Translation:
    args: Tuple[str, ...]
    # What the user should know of it, one line each.
    remarks: Tuple[str, ...]


def translate_flags(
    args: Sequence[str],
    program: str,
    programs: Mapping[str, Mapping[str, Flag]],
    surroundings: Surroundings,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Translation:
    """The arguments of a foreign trainer as those of `program`, each flag once. `programs`: what each
    takes; of a flag that only another one takes nothing is lost."""
    translator = _Translator(programs, program, surroundings)
    for word, value in _split(args, translator.known):
        translator.add_flag(word, value)
    for variable, value in environment.items():
        translator.add_variable(variable, value)
    translator.settle_length()
    texts = (choice.text for choice in translator.chosen.values())
    return Translation(tuple(texts), tuple(translator.remarks))


@dataclass(frozen=True)
class _Choice:
    rank: int
    word: str
    text: str


class _Translator:
    def __init__(
        self, programs: Mapping[str, Mapping[str, Flag]], program: str, surroundings: Surroundings
    ):
        self.known = {name: flag for flags in programs.values() for name, flag in flags.items()}
        self._own = programs[program]
        self._surroundings = surroundings
        self.chosen: Dict[str, _Choice] = {}
        self.remarks: List[str] = []

    def add_flag(self, word: str, value: Optional[str]) -> None:
        name = (flag_name(word) or "").replace("-", "_")
        own = _OWN_NAME.get(name, name)
        if not self._means_something(own, value):
            self.remarks.append(_meaningless(word))
            return
        text = self._translate(own, word, value)
        if text is not None and own in self._own:
            rank = 0 if own == name else 1 + ALIASES[own].index(name)
            self._choose(own, _Choice(rank, word, text))

    def add_variable(self, variable: str, value: str) -> None:
        own = flag_of_variable(variable)
        if own in self._own and own not in self.chosen:
            text = self._translate(own, f"env {variable}", value)
            if text is not None:
                self.chosen[own] = _Choice(0, variable, text)
                # The launcher chooses that one.
                if own != "model_dir":
                    self.remarks.append(f"env {variable} is taken as {text}")

    def settle_length(self) -> None:
        """Of trainers that take both, the steps count where they are said."""
        if "training_steps" in self.chosen and "epochs" in self.chosen:
            epochs, steps = self.chosen.pop("epochs"), self.chosen["training_steps"]
            self.remarks.append(f"{epochs.word}: expected none beside {steps.word}; left out")

    def _means_something(self, name: str, value: Optional[str]) -> bool:
        """Whether one of the four programs has the flag: one that a ps does not have may be the worker's."""
        flag = self.known.get(name)
        if flag is None or name in _SERVING or flag.group.startswith(_CLUSTER):
            return False
        return value is not None or not flag.takes_value

    def _translate(self, own: str, word: str, value: Optional[str]) -> Optional[str]:
        """The flag as Keelson takes it; None: its value means nothing there."""
        flag = self.known[own]
        if value is None or not flag.takes_value:
            return f"--{own}"
        try:
            return f"--{own}={translate_value(own, value, flag.type, self._surroundings)}"
        except ValueError as error:
            self.remarks.append(f"{word}: {error}; left out")
            return None

    def _choose(self, own: str, new: _Choice) -> None:
        old = self.chosen.get(own)
        loser = new if old and old.rank < new.rank else old
        if loser and old and old.word != new.word:
            self.remarks.append(_meaningless(loser.word))
        if loser is not new:
            self.chosen[own] = new


def flag_of_variable(variable: str) -> str:
    """Keelson's flag for the hyper-parameter that such a variable holds; "" for none."""
    if not variable.startswith(_VARIABLE_PREFIX):
        return ""
    name = variable[len(_VARIABLE_PREFIX) :].lower()
    return name if name in ALIASES else _OWN_NAME.get(name, "")


def _meaningless(word: str) -> str:
    return f"{word}: nothing in Keelson's programs means the same, left out"


def _split(args: Sequence[str], known: Mapping[str, Flag]) -> List[Tuple[str, Optional[str]]]:
    """Flags with their values; a word that belongs to no flag stands alone."""
    result: List[Tuple[str, Optional[str]]] = []
    takes_value = False
    for argument in args:
        if flag_name(argument):
            name, separator, value = argument.partition("=")
            result.append((name, value if separator else None))
            flag = known.get(name.lstrip("-"))
            takes_value = not separator and (flag is None or flag.takes_value)
        elif takes_value:
            result[-1] = (result[-1][0], argument)
            takes_value = False
        else:
            result.append((argument, None))
    return result


def has_flag(args: Sequence[str], name: str) -> bool:
    return any(flag_name(argument) == name for argument in args)


def remove_flag(args: Sequence[str], name: str) -> List[str]:
    """`args` without --name=value, --name value and --name."""
    kept: List[str] = []
    may_be_value = False
    for argument in args:
        if flag_name(argument) == name:
            may_be_value = "=" not in argument
        elif not may_be_value or argument.startswith("--"):
            kept.append(argument)
            may_be_value = False
        else:
            may_be_value = False
    return kept


def flag_value(args: Sequence[str], name: str) -> Optional[str]:
    """Returns the value of --name=value or --name value; None: the flag is absent."""
    for i, argument in enumerate(args):
        if flag_name(argument) == name:
            _, separator, value = argument.partition("=")
            return value if separator else next(iter(args[i + 1 : i + 2]), "")
    return None


def flag_name(argument: str) -> Optional[str]:
    match = re.match(r"--?([A-Za-z][\w-]*)(=|$)", argument)
    return match.group(1) if match else None
