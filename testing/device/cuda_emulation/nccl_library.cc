#include "core/device/cuda/nccl_library.h"

namespace keelson {

// The emulation is always there.
absl::StatusOr<NcclLibrary> LoadNccl() {
  return NcclLibrary{&ncclGetErrorString, &ncclCommInitAll, &ncclCommDestroy,
                     &ncclGroupStart,     &ncclGroupEnd,    &ncclReduce};
}

}  // namespace keelson
