import torch, keelson, keelson.torch as kt
from train import make_model, data, loss_of

model = make_model()
with keelson.join("mnist", records=len(data), batch_size=64, epochs=20, model_dir="/model",
                  initial="pretrained.safetensors") as job:        # newest good snapshot in /model, else this file, else the model as built
    print(f"step {job.global_step} of {job.max_steps}, epoch {job.epoch:.1f}")
    opt = kt.Optimizer(job, model, keelson.Adam(lr=1e-4))          # a changed rate is allowed, a changed shape is not
    for batch in kt.Loader(job, data):                             # records that are done do not come again
        opt.zero_grad(); loss = loss_of(model, batch); loss.backward(); opt.step(loss)
    job.save()                                                     # a snapshot now; the chief writes others by itself
state = keelson.load_state_dict("/model", step="best")             # anywhere, without a cluster
model.load_state_dict(kt.tensors(state), strict=True)
torch.save(model.state_dict(), "mnist.pt")
