#include "core/data/libsvm_format.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/columns/number_text.h"

namespace keelson {
namespace {

constexpr absl::string_view kBlanks = " \t";

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

const char* SkipBlanks(const char* at, const char* end) {
  while (at < end && IsBlank(*at)) ++at;
  return at;
}

// Whether a token may end here.
bool AtBreak(const char* at, const char* end) { return at == end || IsBlank(*at); }

class LibsvmFormat : public RecordFormat {
 public:
  LibsvmFormat(RecordSchema schema, std::vector<float> label_values)
      : RecordFormat(std::move(schema)),
        label_values_(std::move(label_values)),
        feature_(RecordFormat::schema().features.front()),
        num_classes_(RecordFormat::schema().labels.empty()
                         ? 0
                         : RecordFormat::schema().labels.front().num_classes) {}

  uint64_t fingerprint() const override {
    constexpr int kRules = 1;  // counts up when the code calls other lines records
    return StableHash(absl::StrCat("libsvm ", kRules, " ", feature_.FormText(), " ", num_classes_,
                                   " ", absl::StrJoin(label_values_, ","))) |
           1;
  }

  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    FeatureValues* const values = &batch->features.front();
    const char* const end = line.data() + line.size();
    const char* at = ReadLabel(line, row, batch, error);
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
  static bool Fail(absl::string_view line, const char* at, std::string expected,
                   RecordError* error) {
    const size_t position = at - line.data();
    *error = {position + 1, std::move(expected), FoundText(line.substr(position), kBlanks)};
    return false;
  }

  // Returns where the pairs begin; null: it is no record's.
  const char* ReadLabel(absl::string_view line, int64_t row, Batch* batch,
                        RecordError* error) const {
    const char* const end = line.data() + line.size();
    const char* const begin = SkipBlanks(line.data(), end);
    float label = 0;
    const char* const at = ReadDecimal(begin, end, &label);
    if (at == nullptr || !AtBreak(at, end)) {
      Fail(line, begin, "a label", error);
      return nullptr;
    }
    if (batch->labels.empty()) return at;
    const std::optional<float> mapped = LabelOf(label);
    if (!mapped.has_value()) {
      Fail(line, begin, ExpectedLabel(), error);
      return nullptr;
    }
    batch->labels.front().data()[row] = *mapped;
    return at;
  }

  std::optional<float> LabelOf(float label) const {
    if (!label_values_.empty()) {
      const auto found = std::find(label_values_.begin(), label_values_.end(), label);
      if (found == label_values_.end()) return std::nullopt;
      return static_cast<float>(found - label_values_.begin());
    }
    if (num_classes_ == 0) return label;
    if (num_classes_ == 2 && label == -1) return 0.0f;
    const bool is_class =
        label >= 0 && label < static_cast<float>(num_classes_) && label == std::floor(label);
    return is_class ? std::optional<float>(label) : std::nullopt;
  }

  std::string ExpectedLabel() const {
    if (!label_values_.empty()) {
      return absl::StrCat("a label of ", absl::StrJoin(label_values_, ", "));
    }
    if (num_classes_ == 2) return "a label of -1, 0, 1";
    return absl::StrCat("a class from 0 to ", num_classes_ - 1);
  }

  // The next pair. 1: there is one; 0: the line ends; -1: there is something else.
  int ReadPair(absl::string_view line, const char** at, const char* end, uint64_t* index,
               float* value, RecordError* error) const {
    const char* const begin = SkipBlanks(*at, end);
    if (begin == end || *begin == '#') return 0;
    const char* const colon = ReadWhole(begin, end, index);
    if (colon == nullptr || colon == end || *colon != ':') {
      Fail(line, begin, "INDEX:VALUE", error);
      return -1;
    }
    const char* const behind = ReadDecimal(colon + 1, end, value);
    if (behind == nullptr || !AtBreak(behind, end)) {
      Fail(line, colon + 1, "a finite number as the value", error);
      return -1;
    }
    *at = behind;
    return 1;
  }

  bool CheckIndex(absl::string_view line, const char* begin, uint64_t index, uint64_t least,
                  uint64_t most, RecordError* error) const {
    if (index >= least && index <= most) return true;
    return Fail(line, SkipBlanks(begin, line.data() + line.size()),
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
      uint64_t index;
      float value;
      const int found = ReadPair(line, &at, end, &index, &value, error);
      if (found <= 0) return found == 0;
      if (all_used) return Fail(line, SkipBlanks(begin, end), "the end of the line", error);
      if (!CheckIndex(line, begin, index, least, most, error)) return false;
      if (!feature_.weighted && value != 1) {
        return Fail(line, SkipBlanks(begin, end), "the value 1, as the bag has no weights", error);
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
      uint64_t index;
      float value;
      const int found = ReadPair(line, &at, end, &index, &value, error);
      if (found <= 0) return found == 0;
      if (!CheckIndex(line, begin, index, least, count, error)) return false;
      numbers[index - 1] = value;
      least = index + 1;
    }
  }

  const std::vector<float> label_values_;
  const FeatureSpec feature_;
  const int64_t num_classes_;
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
  for (const LabelSpec& label : schema.labels) {
    if (schema.labels.size() == 1 && label.name == kLabel && !label.weighs) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("data.libsvm: expected a model with the one label \"", kLabel, "\", found \"",
                     label.name, "\"", label.weighs ? " as weights" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewLibsvmFormat(
    const v1::DataConfig::Libsvm& config, const RecordSchema& schema) {
  RETURN_IF_ERROR(CheckSchema(schema));
  const int64_t classes = schema.labels.empty() ? 0 : schema.labels.front().num_classes;
  if (config.label_values_size() > 0 && config.label_values_size() != classes) {
    return absl::InvalidArgumentError(absl::StrCat("data.libsvm.label_values: expected ",
                                                   classes == 0
                                                       ? "none (the model's label is a number)"
                                                       : absl::StrCat(classes, " (the classes)"),
                                                   ", found ", config.label_values_size()));
  }
  return std::make_unique<LibsvmFormat>(
      schema, std::vector<float>(config.label_values().begin(), config.label_values().end()));
}

}  // namespace keelson
