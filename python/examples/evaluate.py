import keelson.torch as kt
from train import make_model

data = kt.IdxDataset("/data", "t10k")

def score(model, batch):                            # in evaluation mode, without gradients
    images, labels = batch
    return model(images), labels                    # logits [n, 10], and the classes

if __name__ == "__main__":
    kt.Evaluator("/model", make_model(), data, score, classes=10, page=6006).run()    # until the job is over
