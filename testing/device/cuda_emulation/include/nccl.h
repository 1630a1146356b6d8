// The emulation's stand-in for NCCL's header: the part of it that Keelson uses.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_NCCL_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_NCCL_H_

#include <cstddef>

#include "cuda_runtime_api.h"

typedef struct ncclComm* ncclComm_t;
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclRedOp_t { ncclSum = 0 };
enum ncclDataType_t { ncclFloat32 = 7 };

// Also as C calls, because they may be looked up in a library by name.
extern "C" {
const char* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream);
}

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_NCCL_H_
