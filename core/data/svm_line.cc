#include "core/data/svm_line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/data/columns/number_text.h"

namespace keelson {

bool FailSvm(absl::string_view line, const char* at, std::string expected, RecordError* error) {
  const size_t position = at - line.data();
  *error = {position + 1, std::move(expected), FoundText(line.substr(position), kSvmBlanks)};
  return false;
}

const char* ReadSvmValue(absl::string_view line, const char* begin, const char* at,
                         const char* form, float* value, RecordError* error) {
  const char* const end = line.data() + line.size();
  if (at == nullptr || at == end || *at != ':') {
    FailSvm(line, begin, form, error);
    return nullptr;
  }
  const char* const behind = ReadDecimal(at + 1, end, value);
  if (behind != nullptr && AtSvmBreak(behind, end)) return behind;
  FailSvm(line, at + 1, "a finite number as the value", error);
  return nullptr;
}

SvmLabel::SvmLabel(const RecordSchema& schema, absl::Span<const float> values)
    : values_(values.begin(), values.end()),
      num_classes_(schema.labels.empty() ? 0 : schema.labels.front().num_classes) {}

const char* SvmLabel::Read(absl::string_view line, int64_t row, Batch* batch,
                           RecordError* error) const {
  const char* const end = line.data() + line.size();
  const char* const begin = SkipSvmBlanks(line.data(), end);
  float label = 0;
  const char* const at = ReadDecimal(begin, end, &label);
  if (at == nullptr || !AtSvmBreak(at, end)) {
    FailSvm(line, begin, "a label", error);
    return nullptr;
  }
  if (batch->labels.empty()) return at;
  const std::optional<float> mapped = LabelOf(label);
  if (!mapped.has_value()) {
    FailSvm(line, begin, Expected(), error);
    return nullptr;
  }
  batch->labels.front().data()[row] = *mapped;
  return at;
}

std::optional<float> SvmLabel::LabelOf(float label) const {
  if (!values_.empty()) {
    const auto found = std::find(values_.begin(), values_.end(), label);
    if (found == values_.end()) return std::nullopt;
    return static_cast<float>(found - values_.begin());
  }
  if (num_classes_ == 0) return label;
  if (num_classes_ == 2 && label == -1) return 0.0f;
  const bool is_class =
      label >= 0 && label < static_cast<float>(num_classes_) && label == std::floor(label);
  return is_class ? std::optional<float>(label) : std::nullopt;
}

std::string SvmLabel::Expected() const {
  if (!values_.empty()) return absl::StrCat("a label of ", absl::StrJoin(values_, ", "));
  if (num_classes_ == 2) return "a label of -1, 0, 1";
  return absl::StrCat("a class from 0 to ", num_classes_ - 1);
}

std::string SvmLabel::Fingerprint() const {
  return absl::StrCat(num_classes_, " ", absl::StrJoin(values_, ","));
}

absl::Status CheckSvmLabel(absl::string_view field, const RecordSchema& schema, int label_values) {
  for (const LabelSpec& label : schema.labels) {
    if (schema.labels.size() == 1 && label.name == kLabel && !label.weighs) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected a model with the one label \"", kLabel, "\", found \"",
                     label.name, "\"", label.weighs ? " as weights" : ""));
  }
  const int64_t classes = schema.labels.empty() ? 0 : schema.labels.front().num_classes;
  if (label_values == 0 || label_values == classes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ".label_values: expected ",
                                                 classes == 0
                                                     ? "none (the model's label is a number)"
                                                     : absl::StrCat(classes, " (the classes)"),
                                                 ", found ", label_values));
}

}  // namespace keelson
