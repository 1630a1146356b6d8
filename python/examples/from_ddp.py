import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import TensorDataset
import keelson
import keelson.torch as kt

EPOCHS, BATCH_SIZE, MODEL = 10, 32, "/model"


class Trainer:
    def __init__(self, job, model, batches, optimizer):
        self.job = job
        self.model = model
        self.batches = batches
        self.optimizer = optimizer

    def run_batch(self, features, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(features), targets)
        loss.backward()
        self.optimizer.step(loss)
        return loss.item()

    def train(self):
        for batch in self.batches:
            loss = self.run_batch(*batch)
            if self.job.global_step % 64 == 0:
                print(f"epoch {self.job.epoch:.1f}: loss {loss:.4f}")


def make_data():
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(2048, 20, generator=generator)
    return TensorDataset(features, features.sum(1, keepdim=True) + features[:, :1] * features[:, 1:2])


def make_model():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))


def main():
    data, model = make_data(), make_model()
    with keelson.join("sums", records=len(data), batch_size=BATCH_SIZE, epochs=EPOCHS, model_dir=MODEL) as job:
        optimizer = kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=0.02))
        batches = kt.Loader(job, data)
        Trainer(job, model, batches, optimizer).train()


if __name__ == "__main__":
    main()
