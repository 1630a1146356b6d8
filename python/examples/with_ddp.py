import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, BATCH_SIZE, MODEL = 10, 32, "/model/model.pt"


class Trainer:
    def __init__(self, model, batches, optimizer):
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(model)
        self.batches = batches
        self.optimizer = optimizer

    def run_batch(self, features, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(features), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def save(self):
        torch.save(self.model.module.state_dict(), MODEL)

    def train(self):
        for epoch in range(EPOCHS):
            self.batches.sampler.set_epoch(epoch)
            for batch in self.batches:
                loss = self.run_batch(*batch)
            if self.rank == 0:
                print(f"epoch {epoch}: loss {loss:.4f}")
                self.save()


def make_data():
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(2048, 20, generator=generator)
    return TensorDataset(features, features.sum(1, keepdim=True) + features[:, :1] * features[:, 1:2])


def make_model():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))


def main():
    dist.init_process_group("gloo")
    data, model = make_data(), make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    batches = DataLoader(data, BATCH_SIZE, shuffle=False, sampler=DistributedSampler(data))
    Trainer(model, batches, optimizer).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
