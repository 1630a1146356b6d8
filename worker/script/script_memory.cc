#include "worker/script/script_memory.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/script/variable_directory.h"

namespace keelson {
namespace {

struct Layout {
  std::vector<ArrayPlaces> places;  // by variable
  size_t directory_bytes = 0;
  size_t bytes = 0;
};

// All values, then all gradients.
Layout LayOut(absl::Span<const VariableSpec> variables) {
  Layout layout;
  layout.directory_bytes = VariableDirectoryBytes(variables);
  layout.places.resize(variables.size());
  size_t at = layout.directory_bytes;
  for (size_t ArrayPlaces::*const array : {&ArrayPlaces::values, &ArrayPlaces::gradients}) {
    for (size_t v = 0; v < variables.size(); ++v) {
      at = AlignedArray(at);
      layout.places[v].*array = at;
      at += static_cast<size_t>(variables[v].bytes());
    }
  }
  layout.bytes = AlignedArray(at);
  return layout;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptMemory>> ScriptMemory::Create(
    absl::Span<const VariableSpec> variables) {
  const Layout layout = LayOut(variables);
  ASSIGN_OR_RETURN(std::unique_ptr<SealedMemory> sealed,
                   SealedMemory::Create(layout.bytes, SealedMemory::Touch::kNow));
  char* const base = sealed->data();
  std::unique_ptr<ScriptMemory> memory(new ScriptMemory(std::move(sealed)));
  memory->directory_bytes_ = layout.directory_bytes;
  const std::string directory = VariableDirectory(variables, layout.places);
  std::memcpy(base, directory.data(), directory.size());
  const auto array = [&](size_t at, const VariableSpec& variable) {
    return absl::Span<float>(reinterpret_cast<float*>(base + at),
                             static_cast<size_t>(variable.shape.num_elements()));
  };
  for (size_t v = 0; v < variables.size(); ++v) {
    memory->arrays_.values.push_back(array(layout.places[v].values, variables[v]));
    memory->arrays_.gradients.push_back(array(layout.places[v].gradients, variables[v]));
  }
  return memory;
}

}  // namespace keelson
