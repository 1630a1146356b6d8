#include "core/device/cuda/nccl_group.h"

#include <nccl.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/nccl_library.h"

namespace keelson {
namespace {

std::string ErrorText(const NcclLibrary& nccl, const char* call, ncclResult_t result) {
  return absl::StrCat(call, ": ", nccl.get_error_string(result));
}

class NcclGroup : public DeviceGroup {
 public:
  NcclGroup(const NcclLibrary& nccl, std::vector<ncclComm_t> communicators,
            std::vector<CudaContext*> contexts, std::vector<std::unique_ptr<Device>> devices)
      : DeviceGroup(std::move(devices)),
        nccl_(nccl),
        communicators_(std::move(communicators)),
        contexts_(std::move(contexts)) {}

  ~NcclGroup() override {
    for (CudaContext* context : contexts_) {
      context->BeginRelease();
      context->SynchronizeStreams();
    }
    for (ncclComm_t communicator : communicators_) {
      Check("ncclCommDestroy", nccl_.comm_destroy(communicator));
    }
  }

  void ReduceToFirst(int64_t n, absl::Span<DeviceMemory* const> memories) override {
    if (n == 0 || !BeginAll(n, memories)) return;
    if (!Check("ncclGroupStart", nccl_.group_start())) return;
    bool ok = true;
    for (size_t i = 0; ok && i < contexts_.size(); ++i) {
      float* const data = memories[i]->data();
      ok =
          Check("ncclReduce", nccl_.reduce(data, data, n, ncclFloat32, ncclSum,
                                           /*root=*/0, communicators_[i], contexts_[i]->compute()));
    }
    Check("ncclGroupEnd", nccl_.group_end());
  }

 private:
  // A failure of one is a failure of the first, whose status is the group's.
  bool BeginAll(int64_t n, absl::Span<DeviceMemory* const> memories) {
    for (size_t i = 0; i < contexts_.size(); ++i) {
      if (contexts_[i]->BeginUnrepeated("ReduceToFirst", {{memories[i], n}})) continue;
      contexts_.front()->Fail(contexts_[i]->status());
      return false;
    }
    return true;
  }
  bool Check(const char* call, ncclResult_t result) {
    if (result == ncclSuccess) return true;
    contexts_.front()->Fail(contexts_.front()->Error(ErrorText(nccl_, call, result)));
    return false;
  }

  const NcclLibrary nccl_;
  const std::vector<ncclComm_t> communicators_;
  const std::vector<CudaContext*> contexts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeNcclGroup(
    std::vector<std::unique_ptr<CudaDevice>>* devices) {
  ASSIGN_OR_RETURN(const NcclLibrary nccl, LoadNccl());
  std::vector<int> ordinals;
  std::vector<CudaContext*> contexts;
  for (const auto& device : *devices) {
    contexts.push_back(device->context());
    ordinals.push_back(contexts.back()->ordinal());
  }
  std::vector<ncclComm_t> communicators(ordinals.size());
  const ncclResult_t result =
      nccl.comm_init_all(communicators.data(), static_cast<int>(ordinals.size()), ordinals.data());
  if (result != ncclSuccess) {
    return absl::UnavailableError(ErrorText(nccl, "ncclCommInitAll", result));
  }
  std::vector<std::unique_ptr<Device>> members;
  for (auto& device : *devices) members.push_back(std::move(device));
  return std::make_unique<NcclGroup>(nccl, std::move(communicators), std::move(contexts),
                                     std::move(members));
}

}  // namespace keelson
