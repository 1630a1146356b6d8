#include "core/data/libsvm_format.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/columns/number_text.h"
#include "core/data/svm_line.h"

namespace keelson {
namespace {

class LibsvmFormat : public RecordFormat {
 public:
  LibsvmFormat(RecordSchema schema, absl::Span<const float> label_values)
      : RecordFormat(std::move(schema)),
        label_(RecordFormat::schema(), label_values),
        feature_(RecordFormat::schema().features.front()) {}

  uint64_t fingerprint() const override {
    constexpr int kRules = 1;  // counts up when the code calls other lines records
    return StableHash(absl::StrCat("libsvm ", kRules, " ", feature_.FormText(), " ",
                                   label_.Fingerprint())) |
           1;
  }

  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    FeatureValues* const values = &batch->features.front();
    const char* const end = line.data() + line.size();
    const char* at = label_.Read(line, row, batch, error);
    if (at == nullptr) return false;
    switch (feature_.kind) {
      case FeatureKind::kNumbers:
        return ReadNumbers(line, at, end, values->numbers.data() + row * feature_.shape.dims()[0],
                           error);
      case FeatureKind::kBag:
        break;
      case FeatureKind::kId:
        return false;  // which NewLibsvmFormat refuses
    }
    const size_t before = values->ids.size();
    if (!ReadBag(line, at, end, values, error)) {
      values->ids.resize(before);
      values->weights.resize(feature_.weighted ? before : 0);
      return false;
    }
    values->offsets[row + 1] = static_cast<int64_t>(values->ids.size());
    return true;
  }

 private:
  // The next pair. 1: there is one; 0: the line ends; -1: there is something else.
  int ReadPair(absl::string_view line, const char** at, const char* end, uint64_t* index,
               float* value, RecordError* error) const {
    const char* const begin = SkipSvmBlanks(*at, end);
    if (begin == end || *begin == '#') return 0;
    const char* const behind =
        ReadSvmValue(line, begin, ReadWhole(begin, end, index), "INDEX:VALUE", value, error);
    if (behind == nullptr) return -1;
    *at = behind;
    return 1;
  }

  bool CheckIndex(absl::string_view line, const char* begin, uint64_t index, uint64_t least,
                  uint64_t most, RecordError* error) const {
    if (index >= least && index <= most) return true;
    return FailSvm(line, SkipSvmBlanks(begin, line.data() + line.size()),
                   index < least ? absl::StrCat("an index of ", least, " or more, as they ascend")
                                 : absl::StrCat("an index of ", most, " or less"),
                   error);
  }

  bool ReadBag(absl::string_view line, const char* at, const char* end, FeatureValues* values,
               RecordError* error) const {
    const uint64_t most = static_cast<uint64_t>(feature_.num_ids) - 1;  // all bits for 0: any id
    uint64_t least = 0;
    bool all_used = false;  // the greatest index of all was there
    for (;;) {
      const char* const begin = at;
      uint64_t index = 0;
      float value = 0;
      const int found = ReadPair(line, &at, end, &index, &value, error);
      if (found <= 0) return found == 0;
      if (all_used) return FailSvm(line, SkipSvmBlanks(begin, end), "the end of the line", error);
      if (!CheckIndex(line, begin, index, least, most, error)) return false;
      if (!feature_.weighted && value != 1) {
        return FailSvm(line, SkipSvmBlanks(begin, end), "the value 1, as the bag has no weights",
                       error);
      }
      values->ids.push_back(index);
      if (feature_.weighted) values->weights.push_back(value);
      least = index + 1;
      all_used = least == 0;
    }
  }

  bool ReadNumbers(absl::string_view line, const char* at, const char* end, float* numbers,
                   RecordError* error) const {
    const auto count = static_cast<uint64_t>(feature_.shape.dims()[0]);
    std::fill_n(numbers, count, 0.0f);
    uint64_t least = 1;
    for (;;) {
      const char* const begin = at;
      uint64_t index = 0;
      float value = 0;
      const int found = ReadPair(line, &at, end, &index, &value, error);
      if (found <= 0) return found == 0;
      if (!CheckIndex(line, begin, index, least, count, error)) return false;
      numbers[index - 1] = value;
      least = index + 1;
    }
  }

  const SvmLabel label_;
  const FeatureSpec feature_;
};

absl::Status CheckSchema(const RecordSchema& schema) {
  const FeatureSpec& feature = schema.features.front();
  const bool holds_pairs = feature.kind == FeatureKind::kBag ||
                           (feature.kind == FeatureKind::kNumbers && feature.shape.rank() == 1);
  if (schema.features.size() != 1 || feature.name != kFeatures || !holds_pairs) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.libsvm: expected a model with the one feature \"", kFeatures,
                     "\", a bag or numbers [n], found ", schema.FeaturesText()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewLibsvmFormat(
    const v1::DataConfig::Libsvm& config, const RecordSchema& schema) {
  RETURN_IF_ERROR(CheckSchema(schema));
  RETURN_IF_ERROR(CheckSvmLabel("data.libsvm", schema, config.label_values_size()));
  return std::make_unique<LibsvmFormat>(schema, config.label_values());
}

}  // namespace keelson
