// NCCL, as far as it is used here. Source: NCCL's nccl.h, version 2.
#ifndef KEELSON_CORE_DEVICE_CUDA_NCCL_LIBRARY_H_
#define KEELSON_CORE_DEVICE_CUDA_NCCL_LIBRARY_H_

#include <nccl.h>

#include "absl/status/statusor.h"

namespace keelson {

struct NcclLibrary {
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclCommInitAll) comm_init_all;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclReduce) reduce;
};

// Loads libnccl.so.2 when it is called first, so that programs start without it; it stays loaded.
// UNAVAILABLE: it is not installed, or lacks a function.
absl::StatusOr<NcclLibrary> LoadNccl();

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_NCCL_LIBRARY_H_
