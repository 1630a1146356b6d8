#include "core/script/variable_directory.h"

#include <cstdint>

namespace keelson {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

size_t WholeWords(size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

}  // namespace

size_t VariableDirectoryBytes(absl::Span<const VariableSpec> variables) {
  size_t bytes = kWord;
  for (const VariableSpec& variable : variables) {
    bytes += kWord + WholeWords(variable.name.size());
    bytes += kWord * (1 + variable.shape.dims().size() + 2);
  }
  return bytes;
}

std::string VariableDirectory(absl::Span<const VariableSpec> variables,
                              absl::Span<const ArrayPlaces> places) {
  std::string directory;
  const auto add = [&directory](uint64_t number) {
    directory.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  add(variables.size());
  for (size_t v = 0; v < variables.size(); ++v) {
    const std::string& name = variables[v].name;
    add(name.size());
    directory.append(name);
    directory.append(WholeWords(name.size()) - name.size(), '\0');
    const auto& dims = variables[v].shape.dims();
    add(dims.size());
    for (const int64_t dim : dims) add(static_cast<uint64_t>(dim));
    add(places[v].values);
    add(places[v].gradients);
  }
  return directory;
}

}  // namespace keelson
