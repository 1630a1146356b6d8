// The initial values of a model that takes some of them from files (InitialValuesConfig.from).
#ifndef KEELSON_CORE_WARM_START_WARM_START_H_
#define KEELSON_CORE_WARM_START_WARM_START_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/stop_signal.h"
#include "core/config/initial_values.h"
#include "core/tensor/variable.h"
#include "core/tensor_files/tensor_source.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Immutable, thread-safe. Holds the files open, so that they stay the same while they are read, and
// in memory what they say of their tensors, not the elements.
class WarmStart {
 public:
  // `variables` are those that WithInitialValues returns for `config`.
  //
  // Opens the files, and finds each variable's tensor. Errors name the group, the file and what was
  // expected and found; those of several variables are in one line. INVALID_ARGUMENT: a file is
  // absent, of another format or cannot be read in parts; a variable is missing where that is an
  // error; no variable of a group is in its file; a tensor has another shape or no numbers.
  // Otherwise as OpenTensorSource: DATA_LOSS: a file is damaged.
  static absl::StatusOr<std::unique_ptr<WarmStart>> Open(const v1::InitialValuesConfig& config,
                                                         std::vector<VariableSpec> variables,
                                                         uint64_t seed);

  // The tensor that a variable's values come from; null: its initializer says them.
  const StoredOrigin* origin(size_t variable) const {
    return origins_[variable].has_value() ? &*origins_[variable] : nullptr;
  }
  // The path of a file as it was opened: of a directory that of its newest snapshot. `path` is as
  // the configuration has it.
  const std::string& OpenedPath(const std::string& path) const { return files_.at(path).opened; }

  // Reads the initial values of elements [first, first + out.size()) of a variable, wherever they
  // come from. INVALID_ARGUMENT: one in a file is not finite as a float32. Otherwise as
  // TensorSource::ReadFloats.
  absl::Status Read(size_t variable, int64_t first, absl::Span<float> out) const;

  // Reads all that comes from files once, before anything is done with it. The errors of Read;
  // CANCELLED: `stop` was raised.
  absl::Status Verify(const StopSignal& stop) const;

  // One line: how many variables start from files, which do not, which of these were looked for,
  // and for each file how many were taken and what nobody took; of many names the first ones.
  std::string Report() const;

 private:
  struct File {
    std::string opened;
    std::unique_ptr<TensorSource> source;
    std::map<std::string, TensorInfo> tensors;
    std::vector<std::string> variables;  // as far as names tell
  };

  WarmStart(std::vector<VariableSpec> variables, uint64_t seed)
      : variables_(std::move(variables)), seed_(seed), origins_(variables_.size()) {}

  absl::Status OpenFile(const StoredOrigin& origin);
  // Sets origins_ and missing_.
  void Find(const std::vector<StoredStart>& starts);
  absl::Status CheckMissing(const std::vector<StoredStart>& starts) const;
  absl::Status CheckGroups(const std::vector<StoredStart>& starts) const;
  absl::Status CheckTensors() const;
  // The variables that a file has and nobody took.
  std::vector<std::string> LeftIn(const std::string& path) const;

  const std::vector<VariableSpec> variables_;
  const uint64_t seed_;
  std::map<std::string, File> files_;                 // by the configuration's path
  std::vector<std::optional<StoredOrigin>> origins_;  // by variable
  std::vector<size_t> missing_;                       // variables that were looked for in vain
};

}  // namespace keelson

#endif  // KEELSON_CORE_WARM_START_WARM_START_H_
