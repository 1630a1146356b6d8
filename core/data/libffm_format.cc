#include "core/data/libffm_format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/columns/number_text.h"
#include "core/data/svm_line.h"

namespace keelson {
namespace {

constexpr char kForm[] = "FIELD:INDEX:VALUE";
constexpr int64_t kMostLibffmFields = 1 << 20;

struct Triple {
  const char* begin = nullptr;
  uint64_t field = 0;
  uint64_t index = 0;
  float value = 0;
};

// The number of the field that a feature's name says; nullopt: it says none.
std::optional<int64_t> FieldOf(absl::string_view name) {
  int64_t field = 0;
  const bool named = absl::ConsumePrefix(&name, "field") && !name.empty() &&
                     std::all_of(name.begin(), name.end(), absl::ascii_isdigit) &&
                     absl::SimpleAtoi(name, &field);
  const bool plain = named && (name.size() == 1 || name.front() != '0');
  return plain && field < kMostLibffmFields ? std::optional<int64_t>(field) : std::nullopt;
}

class LibffmFormat : public RecordFormat {
 public:
  LibffmFormat(RecordSchema schema, absl::Span<const float> label_values)
      : RecordFormat(std::move(schema)), label_(RecordFormat::schema(), label_values) {
    const std::vector<FeatureSpec>& features = RecordFormat::schema().features;
    for (size_t i = 0; i < features.size(); ++i) {
      const auto field = static_cast<size_t>(*FieldOf(features[i].name));
      if (field >= feature_of_.size()) feature_of_.resize(field + 1, kUnused);
      feature_of_[field] = i;
    }
  }

  uint64_t fingerprint() const override {
    constexpr int kRules = 1;  // counts up when the code calls other lines records
    return StableHash(absl::StrCat("libffm ", kRules, " ", schema().FeaturesText(), " ",
                                   label_.Fingerprint())) |
           1;
  }

  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    const char* const at = label_.Read(line, row, batch, error);
    if (at == nullptr) return false;
    if (ReadTriples(line, at, row, batch, error)) {
      for (size_t i = 0; i < schema().features.size(); ++i) {
        FeatureValues& values = batch->features[i];
        if (values.offsets.empty()) continue;
        values.offsets[row + 1] = static_cast<int64_t>(values.ids.size());
      }
      return true;
    }
    for (FeatureValues& values : batch->features) {
      if (values.offsets.empty()) continue;
      const auto before = static_cast<size_t>(values.offsets[row]);
      values.ids.resize(before);
      values.weights.resize(std::min(before, values.weights.size()));
    }
    return false;
  }

 private:
  static constexpr size_t kUnused = ~size_t{0};
  // How many triples of each feature were there.
  using Counts = absl::InlinedVector<int64_t, 64>;

  bool ReadTriples(absl::string_view line, const char* at, int64_t row, Batch* batch,
                   RecordError* error) const {
    const char* const end = line.data() + line.size();
    Counts counts(schema().features.size(), 0);
    for (;;) {
      Triple triple;
      triple.begin = SkipSvmBlanks(at, end);
      if (triple.begin == end || *triple.begin == '#') {
        return Complete(line, triple.begin, counts, row, batch, error);
      }
      at = ReadTriple(line, &triple, error);
      if (at == nullptr) return false;
      if (triple.field >= feature_of_.size() || feature_of_[triple.field] == kUnused) continue;
      const size_t feature = feature_of_[triple.field];
      if (!Add(line, triple, feature, counts[feature]++, row, batch, error)) return false;
    }
  }

  // Returns where it ends.
  static const char* ReadTriple(absl::string_view line, Triple* triple, RecordError* error) {
    const char* const end = line.data() + line.size();
    const char* at = ReadWhole(triple->begin, end, &triple->field);
    if (at == nullptr || at == end || *at != ':') {
      FailSvm(line, triple->begin, kForm, error);
      return nullptr;
    }
    at = ReadWhole(at + 1, end, &triple->index);
    return ReadSvmValue(line, triple->begin, at, kForm, &triple->value, error);
  }

  // The triple is the feature's number `count` in this line, from 0.
  bool Add(absl::string_view line, const Triple& triple, size_t feature, int64_t count, int64_t row,
           Batch* batch, RecordError* error) const {
    const FeatureSpec& spec = schema().features[feature];
    FeatureValues& values = batch->features[feature];
    if (spec.kind == FeatureKind::kNumbers) {
      const int64_t size = spec.shape.num_elements();
      if (count == size) return WrongCount(line, triple.begin, spec, "one more", error);
      values.numbers.data()[row * size + count] = triple.value;
      return true;
    }
    if (spec.num_ids > 0 && triple.index >= static_cast<uint64_t>(spec.num_ids)) {
      return FailSvm(line, triple.begin, absl::StrCat("an index of ", spec.num_ids - 1, " or less"),
                     error);
    }
    if (!spec.weighted && triple.value != 1) {
      return FailSvm(line, triple.begin,
                     absl::StrCat("the value 1, as \"", spec.name, "\" has no weights"), error);
    }
    if (spec.kind == FeatureKind::kId) {
      if (count == 1) return WrongCount(line, triple.begin, spec, "one more", error);
      values.ids[row] = triple.index;
      return true;
    }
    values.ids.push_back(triple.index);
    if (spec.weighted) values.weights.push_back(triple.value);
    return true;
  }

  // What features have of which too few triples were there.
  bool Complete(absl::string_view line, const char* at, const Counts& counts, int64_t row,
                Batch* batch, RecordError* error) const {
    for (size_t i = 0; i < counts.size(); ++i) {
      const FeatureSpec& spec = schema().features[i];
      if (spec.kind == FeatureKind::kId && counts[i] == 0) {
        return WrongCount(line, at, spec, "none", error);
      }
      if (spec.kind != FeatureKind::kNumbers) continue;
      const int64_t size = spec.shape.num_elements();
      if (counts[i] == size) continue;
      if (counts[i] > 0) return WrongCount(line, at, spec, absl::StrCat(counts[i]), error);
      std::fill_n(batch->features[i].numbers.data() + row * size, size, 0.0f);
    }
    return true;
  }

  static bool WrongCount(absl::string_view line, const char* at, const FeatureSpec& spec,
                         std::string found, RecordError* error) {
    const bool id = spec.kind == FeatureKind::kId;
    *error = {static_cast<size_t>(at - line.data()) + 1,
              absl::StrCat(id ? "one triple"
                              : absl::StrCat("none or ", spec.shape.num_elements(), " triples"),
                           " for \"", spec.name, "\", ", spec.FormText()),
              std::move(found)};
    return false;
  }

  const SvmLabel label_;
  std::vector<size_t> feature_of_;  // by field; kUnused: it has none
};

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewLibffmFormat(
    const v1::DataConfig::Libffm& config, const RecordSchema& schema) {
  for (const FeatureSpec& feature : schema.features) {
    if (FieldOf(feature.name).has_value()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("data.libffm: expected features \"field0\", \"field1\", ..., found ",
                     schema.FeaturesText()));
  }
  RETURN_IF_ERROR(CheckSvmLabel("data.libffm", schema, config.label_values_size()));
  return std::make_unique<LibffmFormat>(schema, config.label_values());
}

}  // namespace keelson
