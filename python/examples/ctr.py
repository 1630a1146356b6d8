import torch, torch.nn as nn
import torch.nn.functional as F
import keelson, keelson.torch as kt

class Ctr(nn.Module):
    def __init__(self):
        super().__init__()
        self.ids = kt.Embedding("ids", dim=16, optimizer=keelson.Adagrad(lr=0.05), init=keelson.Uniform(-0.01, 0.01))
        self.top = nn.Sequential(nn.Linear(26 * 16 + 13, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense, ids):                  # ids: int64 [batch, 26]; only the batch's rows travel
        return self.top(torch.cat([self.ids(ids).flatten(1), dense], 1)).squeeze(1)

model, data = Ctr(), kt.TsvDataset("/data/criteo.tsv", label=0, dense=13, ids=26)
with keelson.join("ctr", records=len(data), batch_size=1024, epochs=1, consistency=keelson.Ssp(4)) as job:
    opt = kt.Optimizer(job, model, keelson.AdamW(lr=1e-3))               # what is not in tables
    for dense, ids, label in kt.Loader(job, data, prefetch=lambda batch: {model.ids: batch[1]}):
        loss = F.binary_cross_entropy_with_logits(model(dense, ids), label)
        opt.zero_grad(); loss.backward(); opt.step(loss)
