"""PyTorch on Keelson's servers. docs/python.md is the guide.

    import keelson.torch as kt
    with keelson.join("mnist", records=len(data), batch_size=64, epochs=5) as job:
        opt = kt.Optimizer(job, model, keelson.Adam(lr=1e-3))
        for images, labels in kt.Loader(job, data, num_workers=2):
            loss = F.cross_entropy(model(images), labels)
            opt.zero_grad()
            loss.backward()
            opt.step(loss)

modules      what of a module goes to the servers
translation  torch.optim's optimizers -> the servers'
optimizer    Optimizer: gradients go out, values come in
gpu          parameters on GPUs
evaluator    Evaluator: scores of a job's snapshots
loader       Loader: the batches of a job's tickets
embedding, dense_rows
             Embedding: rows of tables on the servers, or of a parameter
from_config  from_config: the model of a configuration as a module
config_layers, config_losses, initial_values
             what it is made of
conversion   tensors and bytes
idx          IdxDataset: MNIST and the like
tsv          TsvDataset: Criteo's click logs and the like
"""

from .conversion import tensors
from .embedding import Embedding
from .evaluator import Evaluator
from .from_config import ConfigModel, from_config
from .idx import IdxDataset
from .loader import Loader
from .optimizer import Optimizer
from .tsv import TsvDataset

__all__ = [
    "ConfigModel",
    "Embedding",
    "Evaluator",
    "IdxDataset",
    "Loader",
    "Optimizer",
    "TsvDataset",
    "from_config",
    "tensors",
]
