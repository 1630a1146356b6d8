"""Rank 0 sends a tensor to each of the others, and gets its square back: torch.distributed as kubeflow's smoke test
for PyTorchJobs uses it, with nothing but the environment that the operator sets."""

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    sent, received = torch.full((2, 2), 3.0), torch.zeros(2, 2)
    if rank == 0:
        for peer in range(1, size):
            dist.send(sent, dst=peer)
            dist.recv(received, src=peer)
            print(f"from rank {peer} of {size}: {received[0, 0].item():g}", flush=True)
    else:
        dist.recv(received, src=0)
        dist.send(received * received, dst=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
