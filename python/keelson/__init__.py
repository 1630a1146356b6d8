"""Trains a model of your own, in PyTorch or with arrays, on Keelson's parameter servers.

    with keelson.join("line", variables={"w": [0.0]}, optimizer=keelson.Sgd(lr=0.1), records=100, batch_size=10, epochs=2) as job:
        for step in job.steps():
            loss, gradient = compute(job.values["w"], step.records)
            step.push({"w": gradient}, loss)

docs/python.md is the guide. The modules:

errors          what scripts may catch, and the exit codes of those that do not
optimizers, settings
                what a script says of a job; each prints itself as text proto
config          join()'s arguments -> the job's configuration
job             join(), Job and TrainingStep
membership      what makes a script a member: files, programs, agent
local_cluster   chief and server as processes on this machine
pod_paths       a pod's paths where the pod is a process
programs        where Keelson's programs are; processes that end with the script
work, session   tickets; what the script and its agent tell each other
connection      packets and memory, between a script and a program
lent_memory     finds out that a script writes where it is not to
tables, rows    embedding tables: what a script says of them; the rows that it asks for
evaluation, evaluation_session
                Evaluator: a script scores a job's snapshots
protocol        its messages and memory (docs/agent-protocol.md)
signals         SIGTERM between steps
arrays          buffers and DLPack, whatever library they are of
safetensors, snapshots
                models in files
torch           PyTorch: Optimizer, Loader; imported only when asked for

Takes nothing but the standard library; keelson.torch takes PyTorch.
"""

from .config import Variable
from .errors import AgentLost, BadGradient, Diverged, Error, Finished, JoinError, Stopped, Transient
from .evaluation import Evaluator
from .job import Job, TrainingStep, join
from .optimizers import (
    Adagrad,
    Adam,
    AdamW,
    Constant,
    Cosine,
    Exponential,
    Ftrl,
    Group,
    Momentum,
    Optimizer,
    RmsProp,
    RowWiseAdagrad,
    Sgd,
    Step,
)
from .pod_paths import local_path
from .settings import Async, Checkpoint, EarlyStopping, Evaluation, Ssp, Sync, Transfer, Wire
from .snapshots import State, load_state_dict, save
from .tables import Normal, Table, Uniform

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "AgentLost",
    "Async",
    "BadGradient",
    "Checkpoint",
    "Constant",
    "Cosine",
    "Diverged",
    "EarlyStopping",
    "Error",
    "Evaluation",
    "Evaluator",
    "Exponential",
    "Finished",
    "Ftrl",
    "Group",
    "Job",
    "JoinError",
    "Momentum",
    "Normal",
    "Optimizer",
    "RmsProp",
    "RowWiseAdagrad",
    "Sgd",
    "Ssp",
    "State",
    "Step",
    "Stopped",
    "Sync",
    "Table",
    "TrainingStep",
    "Transfer",
    "Transient",
    "Uniform",
    "Variable",
    "Wire",
    "join",
    "load_state_dict",
    "local_path",
    "save",
]
