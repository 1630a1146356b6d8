#include "core/device/cuda/nccl_library.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status LoaderError() {
  const char* const text = dlerror();
  return absl::UnavailableError(absl::StrCat("dlopen: ", text == nullptr ? "failed" : text));
}

template <typename F>
absl::Status Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function == nullptr ? LoaderError() : absl::OkStatus();
}

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return LoaderError();
  NcclLibrary nccl;
  RETURN_IF_ERROR(Find(library, "ncclGetErrorString", &nccl.get_error_string));
  RETURN_IF_ERROR(Find(library, "ncclCommInitAll", &nccl.comm_init_all));
  RETURN_IF_ERROR(Find(library, "ncclCommDestroy", &nccl.comm_destroy));
  RETURN_IF_ERROR(Find(library, "ncclGroupStart", &nccl.group_start));
  RETURN_IF_ERROR(Find(library, "ncclGroupEnd", &nccl.group_end));
  RETURN_IF_ERROR(Find(library, "ncclReduce", &nccl.reduce));
  return nccl;
}

}  // namespace keelson
