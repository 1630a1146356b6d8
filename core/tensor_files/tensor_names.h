// The names under which people know the tensors of a bundle: those in it, but for TensorFlow 2's
// checkpoints, whose object graph knows better ones.
#ifndef KEELSON_CORE_TENSOR_FILES_TENSOR_NAMES_H_
#define KEELSON_CORE_TENSOR_FILES_TENSOR_NAMES_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {

// Strings that programs keep beside the tensors for themselves: Keelson's state of job and shards,
// and TensorFlow's object graph.
bool IsRecord(absl::string_view name);

struct TensorNames {
  // Name -> name in the bundle. A variable that the bundle holds several times, as a SavedModel
  // does, is here once.
  std::map<std::string, std::string, std::less<>> in_bundle;
  // Names of tensors that are no variables of the model: an optimizer keeps them, or the saver.
  std::set<std::string> state;
  // The bundle has an object graph, so that `state` is known.
  bool tracked = false;

  // The name in the bundle; where there is none, `name` itself, for the bundle to report.
  std::string InBundle(absl::string_view name) const;
};

// A tensor is called what its variable was called. Where that is unknown or two different tensors
// would share a name, it is the path to it, "net/kernel". DATA_LOSS: the object graph cannot be
// read. Otherwise as BundleReader::ReadString.
absl::StatusOr<TensorNames> TensorNamesOf(const BundleReader& bundle);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_TENSOR_NAMES_H_
