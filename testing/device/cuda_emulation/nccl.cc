#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::Machine;
using emulation::NcclCall;

struct ncclComm {
  int64_t clique = 0;  // the number of the ncclCommInitAll that made it
  int rank = 0;
  int ranks = 0;
  int gpu = 0;
};

namespace {

constexpr char kCommunicators[] = "NCCL communicators";

struct Part {
  const float* from;
  float* to;
  size_t count;
  int root;
  ncclComm_t communicator;
  cudaStream_t stream;
};

// Per thread, as in NCCL.
thread_local int group_depth = 0;
thread_local std::vector<Part> group;

// The ranks' parts of one reduction, in their order.
using Reduction = std::vector<Part>;

// Takes the first reduction of the group; empty when ranks are missing or do not agree.
Reduction TakeReduction(std::vector<Part>* parts) {
  const Part first = parts->front();
  Reduction reduction;
  for (int rank = 0; rank < first.communicator->ranks; ++rank) {
    const auto part = std::find_if(parts->begin(), parts->end(), [&](const Part& candidate) {
      return candidate.communicator->clique == first.communicator->clique &&
             candidate.communicator->rank == rank;
    });
    if (part == parts->end() || part->count != first.count || part->root != first.root) return {};
    reduction.push_back(*part);
    parts->erase(part);
  }
  return reduction;
}

bool Usable(Machine* machine, const Reduction& reduction) {
  for (const Part& part : reduction) {
    const size_t bytes = part.count * sizeof(float);
    const int gpu = part.communicator->gpu;
    std::string misuse = machine->Misuse(gpu, part.from, bytes);
    if (misuse.empty() && part.communicator->rank == part.root) {
      misuse = machine->Misuse(gpu, part.to, bytes);
    }
    if (misuse.empty()) continue;
    machine->Complain(absl::StrCat("ncclReduce of rank ", part.communicator->rank, ": ", misuse));
    return false;
  }
  return true;
}

// In the order of the ranks.
void Reduce(const Reduction& reduction) {
  std::vector<float> sums(reduction.front().count);
  for (const Part& part : reduction) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += part.from[i];
  }
  std::copy(sums.begin(), sums.end(), reduction[reduction.front().root].to);
}

// Every rank's stream goes on when all have come and the sums are there.
ncclResult_t Enqueue(Machine* machine, const Reduction& reduction) {
  std::vector<CUstream_st*> streams;
  unsigned memories = 0;
  for (const Part& part : reduction) {
    CUstream_st* const stream = machine->Find(part.stream, part.communicator->gpu);
    if (stream == nullptr || stream->gpu != part.communicator->gpu) return ncclInvalidArgument;
    if (stream->capture != nullptr) return ncclInvalidUsage;
    if (machine->gpu(stream->gpu).error != cudaSuccess) return ncclUnhandledCudaError;
    streams.push_back(stream);
    memories |= 1u << stream->gpu;
  }
  if (!Usable(machine, reduction)) return ncclUnhandledCudaError;
  std::vector<emulation::WorkPointer> arrivals;
  for (CUstream_st* stream : streams) {
    machine->Enqueue(stream, 0, nullptr);
    arrivals.push_back(stream->last);
  }
  CUstream_st* const root = streams[reduction.front().root];
  auto run = [machine, reduction]() -> int {
    if (!Usable(machine, reduction)) return cudaErrorIllegalAddress;
    Reduce(reduction);
    return cudaSuccess;
  };
  machine->Enqueue(root, memories, std::move(run), std::move(arrivals));
  const emulation::WorkPointer reduced = root->last;
  for (CUstream_st* stream : streams) {
    if (stream != root) machine->Enqueue(stream, 0, nullptr, {reduced});
  }
  return ncclSuccess;
}

ncclResult_t EnqueueAll(Machine* machine, std::vector<Part> parts) {
  while (!parts.empty()) {
    const Reduction reduction = TakeReduction(&parts);
    if (reduction.empty()) {
      machine->Complain("ncclGroupEnd: a reduction lacks ranks, or they do not agree: NCCL hangs");
      return ncclInvalidUsage;
    }
    const ncclResult_t result = Enqueue(machine, reduction);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t Release(const char* call, ncclComm_t communicator) {
  return NcclCall(call, [&](Machine* machine) {
    return machine->DestroyLibraryObject(communicator) ? ncclSuccess : ncclInvalidArgument;
  });
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  return NcclCall("ncclCommInitAll", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return ncclInvalidUsage;
    for (int rank = 0; rank < count; ++rank) {
      const int gpu = devices == nullptr ? rank : devices[rank];
      if (gpu < 0 || gpu >= machine->gpus()) return ncclInvalidArgument;
    }
    const auto clique = static_cast<int64_t>(machine->NewLanes(1));
    for (int rank = 0; rank < count; ++rank) {
      const int gpu = devices == nullptr ? rank : devices[rank];
      communicators[rank] =
          machine->MakeLibraryObject(kCommunicators, ncclComm{clique, rank, count, gpu});
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return Release("ncclCommDestroy", communicator);
}

ncclResult_t ncclGroupStart() {
  return NcclCall("ncclGroupStart", [](Machine*) {
    ++group_depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return NcclCall("ncclGroupEnd", [](Machine* machine) {
    if (group_depth == 0) return ncclInvalidUsage;
    if (--group_depth > 0) return ncclSuccess;
    return EnqueueAll(machine, std::exchange(group, {}));
  });
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream) {
  return NcclCall("ncclReduce", [&](Machine* machine) {
    if (communicator == nullptr || type != ncclFloat32 || operation != ncclSum || root < 0 ||
        root >= communicator->ranks || from == nullptr) {
      return ncclInvalidArgument;
    }
    if (count == 0) return ncclSuccess;
    const Part part = {static_cast<const float*>(from),
                       static_cast<float*>(to),
                       count,
                       root,
                       communicator,
                       stream};
    if (group_depth == 0) return EnqueueAll(machine, {part});
    group.push_back(part);
    return ncclSuccess;
  });
}
