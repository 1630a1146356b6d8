// Runs work at a low priority.
#ifndef KEELSON_CORE_BASE_BACKGROUND_H_
#define KEELSON_CORE_BASE_BACKGROUND_H_

#include "absl/functional/function_ref.h"

namespace keelson {

// Runs `work` on a thread of its own, at a low priority of the processor (nice 10, where the system
// allows it), and returns when it is done. The caller's thread keeps its priority: a process
// without privileges could not raise it again.
void RunInBackground(absl::FunctionRef<void()> work);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_BACKGROUND_H_
