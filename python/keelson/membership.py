"""Makes a script a member of a job: its files, the programs that it needs, and the connection with its agent."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
from typing import TYPE_CHECKING, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

from . import safetensors, snapshots
from .arrays import floats_of
from .cluster_environment import cluster_variables, holds_shard, in_cluster, task_index
from .config import JobSettings, Proposal, config_text
from .connection import SLICE_SECONDS
from .errors import AgentLost, Error, Finished, JoinError, Stopped, lost
from .lent_memory import LentMemory
from .local_cluster import LocalCluster
from .optimizers import Optimizer
from .pod_paths import metrics_flags
from .programs import Child, find_program
from .session import Arrays, Model, Session
from .work import Work

if TYPE_CHECKING:
    from .config_file import ConfigFile

# How long the agent may take to say goodbye, and to end.
_LEAVE_SECONDS = 30.0
_END_SECONDS = 10.0
# An agent that has a part of the model leaves when another one has it, or the leader has written a snapshot.
_HAND_OVER_SECONDS = 110.0


def join_job(
    settings: JobSettings,
    proposal: Optional[Proposal],
    optimizer: Optional[Optimizer],
    computes: str,
    check_signal: Callable[[], None],
    agent_flags: Sequence[str] = (),
) -> Membership:
    """Returns when the job has taken the script in. JoinError, AgentLost."""
    _check_place(settings)
    files: _JobFiles
    if proposal is None or optimizer is None:
        assert settings.config is not None
        files = _FilesOfConfig(settings, settings.config)
    else:
        files = _ProposedFiles(settings, _with_initial(settings, proposal), optimizer)
    cluster = None
    try:
        if not in_cluster():
            cluster = LocalCluster(files.make_model_dir(), files.log_dir, files.cluster_flags, _chief_flags(settings))
            cluster.start()
            _say(f"started chief and ps_server of {settings.name}; logs in {files.log_dir}")
        return Membership(settings, files, cluster, computes, check_signal, agent_flags)
    except BaseException:
        if cluster is not None:
            cluster.stop()
        raise
    finally:
        files.close()


def _check_place(settings: JobSettings) -> None:
    """JoinError: the job is of a cluster in which the settings make no sense."""
    by_chief = settings.checkpoint_writer == "chief"
    if holds_shard():
        if settings.model_dir is None and not (by_chief and task_index() > 0):
            raise JoinError(
                "model_dir: expected a directory that all scripts of the job share, as no parameter servers hold the model, or of "
                "the first one alone with checkpoint_writer=\"chief\", found none"
            )
    elif in_cluster() and settings.checkpoint_writer is not None:
        raise JoinError(
            "checkpoint_writer: expected none, as this job's chief is a program of its own, whose --checkpoint_writer says it, "
            f"found {settings.checkpoint_writer!r}"
        )


def _chief_flags(settings: JobSettings) -> List[str]:
    """Of a chief that the script starts, or that its agent is."""
    writer = settings.checkpoint_writer
    return [] if writer is None else [f"--checkpoint_writer={writer}"]


class _JobFiles:
    """What the job's programs read of a script, as files without a name for its agent, and the model directory, which may be
    one that lasts as long as the job."""

    # Of the chief and the servers that the script starts.
    cluster_flags: Sequence[str] = ("--config=script",)
    # An agent that may lead the job gets these.
    leader_flags: Sequence[str] = ()

    def __init__(self, settings: JobSettings) -> None:
        self.model_dir = settings.model_dir
        self.log_dir = "" if self.model_dir is None else os.path.join(self.model_dir, snapshots.SCRIPT_DIR)
        self.table_dims: Dict[str, int] = {}
        # What the script says of variables; empty: the configuration knows.
        self.shapes: Dict[str, Tuple[int, ...]] = {}
        self._is_temporary = False
        self._kept = snapshots.Kept({}, {})
        self._files: List[BinaryIO] = []

    def descriptors(self) -> List[int]:
        return [file.fileno() for file in self._files]

    def agent_flags(self) -> List[str]:
        raise NotImplementedError

    def _make_file(self) -> BinaryIO:
        file = cast(BinaryIO, tempfile.TemporaryFile())
        self._files.append(file)
        return file

    def make_model_dir(self) -> str:
        """For a job of this machine alone. JoinError: the directory cannot be written."""
        if self.model_dir is None:
            self._is_temporary = True
            self.model_dir = tempfile.mkdtemp(prefix=f"keelson-{os.getpid()}-")
            self.log_dir = os.path.join(self.model_dir, snapshots.SCRIPT_DIR)
        try:
            os.makedirs(self.log_dir, exist_ok=True)
        except OSError as error:
            raise JoinError(f"model_dir: expected a directory to write to, found {error}") from error
        return self.model_dir

    def constants(self) -> Dict[str, safetensors.Tensor]:
        """Those of the job, which another script, or an earlier run, may have brought; this script's where the model directory
        is not in sight."""
        kept = snapshots.read_kept(self.model_dir) if self.model_dir is not None else None
        return (kept or self._kept).constants

    def close(self) -> None:
        """The agent has its own."""
        for file in self._files:
            file.close()

    def own_path(self, name: str, extension: str) -> Optional[str]:
        if self._is_temporary or not os.path.isdir(self.log_dir):
            return None
        return os.path.join(self.log_dir, f"{name}-{task_index()}.{extension}")

    def remove(self) -> None:
        """Where nobody asked for them."""
        if self._is_temporary and self.model_dir is not None:
            shutil.rmtree(self.model_dir, ignore_errors=True)


class _ProposedFiles(_JobFiles):
    """Of a job that the script describes."""

    def __init__(self, settings: JobSettings, proposal: Proposal, optimizer: Optimizer) -> None:
        """JoinError: there is no room for them."""
        super().__init__(settings)
        self.table_dims = {name: table.dim for name, table in proposal.tables.items()}
        self.shapes = {name: variable.shape for name, variable in proposal.variables.items()}
        self._kept = snapshots.Kept(proposal.constants, proposal.aliases)
        variables = {
            name: safetensors.Tensor("F32", variable.shape, variable.initial)
            for name, variable in proposal.variables.items()
        }
        with _room():
            config, initial = self._make_file(), self._make_file()
            config.write(config_text(settings, proposal, optimizer).encode())
            snapshots.write_proposed(initial, variables, self._kept)
            config.flush()
            initial.flush()

    def agent_flags(self) -> List[str]:
        config, initial = self.descriptors()
        return [f"--config=/dev/fd/{config}", f"--initial_values=/dev/fd/{initial}"]


class _FilesOfConfig(_JobFiles):
    """Of a job that a configuration of a model of layers describes."""

    def __init__(self, settings: JobSettings, config: ConfigFile) -> None:
        """JoinError: there is no room for them."""
        super().__init__(settings)
        self._records = settings.records
        self.cluster_flags = [f"--config={config.path}"]
        if config.data_dir is not None:
            self.leader_flags = [f"--data_dir={config.data_dir}"]
            self.cluster_flags += self.leader_flags
        self.table_dims = config.table_dims()
        with _room():
            file = self._make_file()
            file.write(config.text.encode())
            file.flush()

    def agent_flags(self) -> List[str]:
        (config,) = self.descriptors()
        return [f"--config=/dev/fd/{config}", f"--records={self._records}"]


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """JoinError: there is none."""
    try:
        yield
    except OSError as error:
        raise JoinError(f"{tempfile.gettempdir()}: expected room for the model, found {error}") from error


class Membership:
    """From the agent's start to its end, and that of the cluster which the script has started."""

    def __init__(
        self,
        settings: JobSettings,
        files: _JobFiles,
        cluster: Optional[LocalCluster],
        computes: str,
        check_signal: Callable[[], None],
        agent_flags: Sequence[str],
    ) -> None:
        self._name = settings.name
        self._files = files
        self._cluster = cluster
        # The agent has a part of the model, which it serves until the job is over or another one has it.
        self._holds_shard = (cluster is None and holds_shard()) or settings.places_on_workers
        self._check_signal = check_signal
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._agent = self._start_agent(theirs, [*self._leader_flags(settings), *agent_flags])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._session = Session(ours, self._look_around, self._explain_loss)
        self.work = Work(self._session, files.table_dims)
        self.table_dims: Mapping[str, int] = files.table_dims
        # The chief waits for a script that wants more of the job then.
        self._was_done = False
        # When the script left; None: it has not. A script that has left gets no more work in any case.
        self._was_over: Optional[bool] = None
        try:
            model = self._session.join(computes) or self._finished_model()
        except BaseException as error:
            self._abandon()
            if isinstance(error, AgentLost) and error.exit_code == JoinError.exit_code:
                raise JoinError(str(error)) from error
            raise
        if settings.debug and model.memory is not None:
            clips = settings.config is not None and settings.config.bounds_gradients()
            self.work.lent_memory = LentMemory(model.arrays, agent_changes_gradients=clips)
        self.max_steps = model.max_steps
        # By variable. Gradients are written between the beginning of a step and its push, values by nobody here.
        self.arrays: Mapping[str, Arrays] = model.arrays
        # That which all of them lie in, shared with the agent; None: it is a job that was done before.
        self.memory = model.memory
        self.values: Mapping[str, memoryview[float]] = _Values(model.arrays)

    @property
    def is_over(self) -> bool:
        """The job has no more work for this script."""
        return self._session.no_more if self._was_over is None else self._was_over

    @property
    def cluster(self) -> Optional[LocalCluster]:
        """That of this script; None: it takes part in another one."""
        return self._cluster

    @property
    def model_dir(self) -> str:
        """Of a job with a cluster of this script."""
        assert self._files.model_dir is not None
        return self._files.model_dir

    def constants(self) -> Dict[str, safetensors.Tensor]:
        return self._files.constants()

    def own_path(self, name: str, extension: str) -> Optional[str]:
        """Of a file of this worker beside the snapshots; None: the model directory is gone with the job."""
        return self._files.own_path(name, extension)

    def end_training(self, reason: str) -> None:
        self._session.end_training(reason)

    def log(self, name: str, step: int, value: float) -> None:
        self._session.log(name, step, value)

    def save(self) -> int:
        return self._session.save()

    def end(self, failed: bool) -> None:
        """Leaves the job. A cluster that this script has started ends with the job when the job has no more work, and
        otherwise before that, with a snapshot; likewise an agent that has a part of the model, which another one gets where
        the job goes on. Error: the agent or the cluster did not end well."""
        is_over = self._was_over = self._session.no_more
        try:
            self._session.leave(_LEAVE_SECONDS)
            self._session.close()
            if self._holds_shard:
                self._end_shard(is_over)
            self._end_agent()
            if self._cluster is not None and is_over and not self._was_done:
                self._cluster.finish(self._check_signal)
                if not failed:
                    self._files.remove()
        finally:
            self._abandon()

    def _finished_model(self) -> Model:
        """Of a job that was done before this script came. JoinError. Finished: the model is not in sight."""
        self._was_done = True
        model_dir = self._files.model_dir
        if self._cluster is None and (model_dir is None or not snapshots.has_snapshot(model_dir)):
            _say(f"the job {self._name} is done, and its model not in sight (model_dir): nothing is left to do")
            raise Finished
        try:
            assert model_dir is not None
            state = snapshots.load_state_dict(model_dir)
            self._session.step = state.step
            expected_shapes = self._files.shapes or {name: tensor.shape for name, tensor in state.items()}
            arrays = {
                name: Arrays(state[name].shape, state[name].data, memoryview(bytearray(state[name].data.nbytes)))
                for name in expected_shapes
            }
        except (Error, KeyError, OSError, ValueError) as error:
            raise JoinError(
                f"{model_dir}: expected the model of the job, which is done, found {error}"
            ) from error
        for name, shape in expected_shapes.items():
            if arrays[name].shape != shape:
                expected, found = list(shape), list(arrays[name].shape)
                raise JoinError(f"{model_dir}: {name}: expected {expected}, found {found}")
        _say(f"the job {self._name} is done at step {state.step}: nothing is left to train; "
             "more epochs or max_steps go on with it")  # fmt: skip
        return Model(arrays, state.step)

    def _start_agent(self, connection: socket.socket, flags: Sequence[str]) -> Child:
        files = self._files
        descriptors = [connection.fileno(), *files.descriptors()]
        command = [find_program("keelson_agent"), f"--script_socket={descriptors[0]}", *files.agent_flags()]
        if files.model_dir is not None:
            command.append(f"--model_dir={files.model_dir}")
        command += [*metrics_flags(), *flags]
        if self._cluster is not None:
            return Child(command, self._cluster.environment("worker"), self._cluster.log_path("agent"), descriptors)
        # The chief of a script's own cluster ends with the script.
        command.append("--propose_when_done")
        return Child(command, cluster_variables(), descriptors=descriptors)

    def _leader_flags(self, settings: JobSettings) -> List[str]:
        """Of an agent that may lead the job."""
        leads = self._cluster is None and holds_shard()
        return [*self._files.leader_flags, *_chief_flags(settings)] if leads else []

    def _look_around(self) -> None:
        """In each slice of a wait."""
        self._check_signal()
        if self._cluster is not None:
            self._cluster.check()

    def _explain_loss(self) -> bool:
        """True: it ended as one does whose job is done."""
        self._look_around()
        code = self._agent.wait(_END_SECONDS)
        if code:
            words = self._agent.last_words()
            raise lost(words, code) if code == JoinError.exit_code else AgentLost(words)
        return self._agent.exit_code() == 0

    def _end_shard(self, is_over: bool) -> None:
        """Waits until the job, which has no more work, needs this part of the model no longer, or another agent has it."""
        if not is_over:
            self._give_shard_away()
        deadline = float("inf") if is_over else time.monotonic() + _HAND_OVER_SECONDS
        while self._agent.wait(SLICE_SECONDS) is None and time.monotonic() < deadline:
            self._check_signal()

    def _give_shard_away(self) -> None:
        """To another agent, or, where this one is the only one of the script's own cluster, into the last snapshot."""
        self._agent.terminate()
        if self._cluster is not None:
            self._cluster.stop()

    def _end_agent(self) -> None:
        """AgentLost: it does not end, or not well."""
        code = self._agent.wait(_END_SECONDS)
        if code is None:
            raise AgentLost(f"keelson_agent: expected its end within {_END_SECONDS:.0f} s, found it running")
        stopped = self._holds_shard and not self._was_over and code == Stopped.exit_code
        if code != 0 and not stopped:
            raise lost(self._agent.last_words(), code)

    def _abandon(self) -> None:
        """Leaves nothing behind, whatever state it is in."""
        self._session.close()  # The agent leaves the job.
        if self._holds_shard:
            self._give_shard_away()
        if self._agent.wait(_HAND_OVER_SECONDS if self._holds_shard else _END_SECONDS) is None:
            self._agent.kill()
        if self._cluster is not None:
            self._cluster.stop()


class _Values(Mapping[str, "memoryview[float]"]):
    """Read-only arrays of the variables' shapes. Each look-up makes a view, no copy."""

    def __init__(self, arrays: Mapping[str, Arrays]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> memoryview[float]:
        shape, values, _ = self._arrays[name]
        return values.toreadonly().cast("f", shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _with_initial(settings: JobSettings, proposal: Proposal) -> Proposal:
    """With the values of `initial` in place of the model's, where it has them. JoinError."""
    if settings.initial is None:
        return proposal
    if settings.model_dir is not None and snapshots.has_snapshot(settings.model_dir):
        return proposal
    given = _initial_arrays(settings)
    found = {name: proposal.variables[name] for name in proposal.variables if name in given}
    if not found:
        raise JoinError(
            f"initial: expected values of {', '.join(proposal.variables)}, found those of {', '.join(given)}"
        )
    for name, variable in found.items():
        shape, data = given[name]
        if shape != variable.shape:
            raise JoinError(f"initial: {name}: expected {list(variable.shape)}, found {list(shape)}")
        proposal.variables[name] = variable._replace(initial=data)
    return proposal


def _initial_arrays(settings: JobSettings) -> Dict[str, Tuple[Tuple[int, ...], memoryview]]:
    source = settings.initial
    try:
        if isinstance(source, Mapping):
            return {name: floats_of(value) for name, value in source.items()}
        assert source is not None
        is_file = source.endswith(".safetensors")
        tensors = safetensors.read(source).tensors if is_file else snapshots.load_state_dict(source)
        return {name: (tensor.shape, tensor.data) for name, tensor in tensors.items() if tensor.dtype == "F32"}
    except (OSError, ValueError, TypeError, Error) as error:
        raise JoinError(f"initial: {error}") from error


def _say(text: str) -> None:
    print(f"keelson: {text}", file=sys.stderr, flush=True)
