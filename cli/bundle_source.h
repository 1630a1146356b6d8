// The tensors of a snapshot, or of a bundle that TensorFlow wrote.
#ifndef KEELSON_CLI_BUNDLE_SOURCE_H_
#define KEELSON_CLI_BUNDLE_SOURCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/tensor_source.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {

class BundleSource : public TensorSource {
 public:
  // Errors of BundleReader::Open.
  static absl::StatusOr<std::unique_ptr<BundleSource>> Open(const std::string& prefix);

  std::vector<TensorInfo> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view name) override;
  // For a snapshot: the tensors that its servers recorded as the model's variables.
  absl::StatusOr<std::vector<TensorInfo>> Variables() override;

 private:
  explicit BundleSource(std::unique_ptr<BundleReader> bundle) : bundle_(std::move(bundle)) {}

  const std::unique_ptr<BundleReader> bundle_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_BUNDLE_SOURCE_H_
