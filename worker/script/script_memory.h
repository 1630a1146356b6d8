// The memory that an agent shares with its script: the values and gradients of the model's
// variables.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_MEMORY_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_MEMORY_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/sealed_memory.h"
#include "core/client/services/parameter_client.h"
#include "core/tensor/variable.h"

namespace keelson {

// Both processes see the same bytes: who may write what and when is the protocol's
// (docs/agent-protocol.md).
class ScriptMemory {
 public:
  // All zeros behind the directory. RESOURCE_EXHAUSTED: there is not enough memory.
  static absl::StatusOr<std::unique_ptr<ScriptMemory>> Create(
      absl::Span<const VariableSpec> variables);

  int fd() const { return memory_->fd(); }
  size_t bytes() const { return memory_->bytes(); }
  size_t directory_bytes() const { return directory_bytes_; }
  // Arrays of elements, by variable; values and gradients live as long as this object.
  const ParameterMemory& arrays() const { return arrays_; }

 private:
  explicit ScriptMemory(std::unique_ptr<SealedMemory> memory) : memory_(std::move(memory)) {}

  const std::unique_ptr<SealedMemory> memory_;
  size_t directory_bytes_ = 0;
  ParameterMemory arrays_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_MEMORY_H_
