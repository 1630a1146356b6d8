// The tensors of a snapshot, or of a bundle that TensorFlow wrote.
#ifndef KEELSON_CORE_TENSOR_FILES_BUNDLE_SOURCE_H_
#define KEELSON_CORE_TENSOR_FILES_BUNDLE_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/bundle_reader.h"
#include "core/tensor_files/tensor_names.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

class BundleSource : public TensorSource {
 public:
  // Errors of BundleReader::Open and TensorNamesOf.
  static absl::StatusOr<std::unique_ptr<BundleSource>> Open(const std::string& prefix);

  // Under the names of TensorNamesOf.
  std::vector<TensorInfo> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view name) override;
  absl::StatusOr<std::vector<std::string>> ReadStrings(absl::string_view name) override;
  bool reads_parts() const override { return true; }
  absl::Status ReadFloats(absl::string_view name, int64_t first, absl::Span<float> out) override;
  absl::StatusOr<const StoredTables*> Tables() override;
  // For a snapshot: the tensors that its servers recorded as the model's variables. For a
  // checkpoint with an object graph: those that it does not know as an optimizer's state.
  absl::StatusOr<std::vector<TensorInfo>> Variables() override;

 private:
  BundleSource(std::unique_ptr<BundleReader> bundle, TensorNames names)
      : bundle_(std::move(bundle)), names_(std::move(names)) {}

  const std::unique_ptr<BundleReader> bundle_;
  const TensorNames names_;
  std::optional<StoredTables> tables_;  // once they were asked for
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_BUNDLE_SOURCE_H_
