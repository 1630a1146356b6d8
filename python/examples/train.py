import torch.nn as nn
import torch.nn.functional as F
import keelson
import keelson.torch as kt

data = kt.IdxDataset("/data", "train")              # any map-style Dataset

def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10))

def loss_of(model, batch):
    images, labels = batch
    return F.cross_entropy(model(images), labels)

def main():
    model = make_model()
    with keelson.join("mnist", records=len(data), batch_size=64, epochs=5, model_dir="/model") as job:
        opt = kt.Optimizer(job, model, keelson.Adam(lr=1e-3, schedule=keelson.Cosine(warmup=100)))
        for batch in kt.Loader(job, data, num_workers=2):
            loss = loss_of(model, batch)
            opt.zero_grad()
            loss.backward()
            opt.step(loss)                          # push, pull; counts exactly once
            if job.global_step % 100 == 0:
                print(job.global_step, float(loss))

if __name__ == "__main__":
    main()
