#include "core/data/criteo_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/columns/number_text.h"
#include "core/data/columns/value_hash.h"

namespace keelson {
namespace {

constexpr int64_t kColumns = 1 + kCriteoNumbers + kCriteoIds;

// Where the parts of a record go: positions among a model's features and labels.
struct CriteoColumns {
  struct Id {
    std::optional<size_t> feature;
    ValueHash hash{0};
    int64_t num_ids = 0;
  };

  std::optional<size_t> numbers;
  std::optional<size_t> missing;
  std::array<Id, kCriteoIds> ids;
  bool label = false;
};

// Where a field ends: at the next tab, or at the line's end.
const char* FieldEnd(const char* at, const char* end) {
  // The strings of the logs have eight bytes.
  uint64_t word;
  if (end - at >= static_cast<ptrdiff_t>(sizeof(word))) {
    std::memcpy(&word, at, sizeof(word));
    constexpr uint64_t kOnes = 0x0101010101010101;
    const uint64_t tabs = word ^ kOnes * '\t';  // of which a zero byte is a tab
    const bool none = ((tabs - kOnes) & ~tabs & kOnes << 7) == 0;
    const char* const behind = at + sizeof(word);
    if (none && (behind == end || *behind == '\t')) return behind;
  }
  const auto* const tab = static_cast<const char*>(std::memchr(at, '\t', end - at));
  return tab == nullptr ? end : tab;
}

class CriteoFormat : public RecordFormat {
 public:
  CriteoFormat(RecordSchema schema, const CriteoColumns& columns)
      : RecordFormat(std::move(schema)), columns_(columns) {
    for (size_t i = 0; i < logarithms_.size(); ++i) {
      logarithms_[i] = std::log1p(static_cast<float>(i));
    }
  }

  // Which lines are records depends on nothing. Another number when the code calls others records.
  uint64_t fingerprint() const override { return 0x6372697465310001; }

  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    const char* at = line.data();
    const char* const end = at + line.size();
    if (end - at < 2 || (*at != '0' && *at != '1') || at[1] != '\t') {
      return Fail(line, at, "0 or 1 as the label", error);
    }
    if (columns_.label) batch->labels.front().data()[row] = *at == '1' ? 1.0f : 0.0f;
    at = ReadNumbers(line, at + 2, row, batch, error);
    return at != nullptr && ReadIds(line, at, row, batch, error);
  }

 private:
  // What is wrong with a field; the number of columns comes first, as it says more.
  static bool Fail(absl::string_view line, const char* at, std::string expected,
                   RecordError* error) {
    const auto columns = 1 + std::count(line.begin(), line.end(), '\t');
    if (columns != kColumns) {
      *error = {line.size() + 1, absl::StrCat(kColumns, " columns"), absl::StrCat(columns)};
      return false;
    }
    const size_t position = at - line.data();
    const absl::string_view rest = line.substr(position);
    *error = {position + 1, std::move(expected),
              rest.empty() || rest.front() == '\t' ? "nothing" : FoundText(rest, "\t")};
    return false;
  }

  // Returns where the strings begin; null: something is no number.
  const char* ReadNumbers(absl::string_view line, const char* at, int64_t row, Batch* batch,
                          RecordError* error) const {
    float* const numbers =
        columns_.numbers ? RowOf(row, &batch->features[*columns_.numbers]) : nullptr;
    float* const missing =
        columns_.missing ? RowOf(row, &batch->features[*columns_.missing]) : nullptr;
    for (int64_t k = 0; k < kCriteoNumbers; ++k) {
      const char* const begin = at;
      const bool negative = *at == '-';
      if (negative) ++at;
      const char* const digits = at;
      uint64_t count = 0;
      // The byte behind the line is no digit.
      for (; IsDigit(*at) && at - digits < kMostDigits; ++at) {
        count = count * 10 + static_cast<uint64_t>(*at - '0');
      }
      if (*at != '\t' || (negative && at == digits)) {
        Fail(line, begin, absl::StrCat("a whole number or nothing as number ", k + 1), error);
        return nullptr;
      }
      if (numbers != nullptr) numbers[k] = negative ? 0 : Logarithm(count);
      if (missing != nullptr) missing[k] = at == begin ? 1.0f : 0.0f;
      ++at;
    }
    return at;
  }

  bool ReadIds(absl::string_view line, const char* at, int64_t row, Batch* batch,
               RecordError* error) const {
    const char* const end = line.data() + line.size();
    for (size_t k = 0; k < columns_.ids.size(); ++k) {
      const char* const behind = FieldEnd(at, end);
      const bool last = k + 1 == columns_.ids.size();
      if ((behind == end) != last) return Fail(line, at, "a string", error);
      const CriteoColumns::Id& id = columns_.ids[k];
      if (id.feature.has_value()) {
        const uint64_t hash = id.hash.Of(absl::string_view(at, behind - at));
        batch->features[*id.feature].ids[row] = IdOfHash(hash, id.num_ids);
      }
      at = behind + 1;
    }
    return true;
  }

  static float* RowOf(int64_t row, FeatureValues* values) {
    return values->numbers.data() + row * kCriteoNumbers;
  }

  float Logarithm(uint64_t count) const {
    return count < logarithms_.size() ? logarithms_[count] : std::log1p(static_cast<float>(count));
  }

  static constexpr ptrdiff_t kMostDigits = 18;

  const CriteoColumns columns_;
  std::array<float, 1024> logarithms_;  // of 1 + i: most counts are small
};

absl::Status NotCriteo(absl::string_view expected, const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.criteo: expected ", expected, ", found ", found));
}

// The number of a field "c1" to "c26", from 0.
std::optional<size_t> IdField(absl::string_view name) {
  for (size_t k = 0; k < size_t{kCriteoIds}; ++k) {
    if (name == absl::StrCat("c", k + 1)) return k;
  }
  return std::nullopt;
}

absl::Status AddFeature(const FeatureSpec& feature, size_t position, CriteoColumns* columns) {
  const bool numbers =
      feature.kind == FeatureKind::kNumbers && feature.shape == Shape({kCriteoNumbers});
  const std::optional<size_t> field = IdField(feature.name);
  if (numbers && feature.name == "numbers") {
    columns->numbers = position;
  } else if (numbers && feature.name == "missing") {
    columns->missing = position;
  } else if (field.has_value() && feature.kind == FeatureKind::kId) {
    columns->ids[*field].feature = position;
    columns->ids[*field].num_ids = feature.num_ids;
  } else {
    return NotCriteo(absl::StrCat("the features \"numbers\" and \"missing\", each [",
                                  kCriteoNumbers, "], and \"c1\" to \"c", kCriteoIds, "\", ids"),
                     absl::StrCat("\"", feature.name, "\", ", feature.FormText()));
  }
  return absl::OkStatus();
}

absl::Status SetSalts(const v1::DataConfig::Criteo& config, CriteoColumns* columns) {
  std::array<bool, kCriteoIds> given = {};
  for (int i = 0; i < config.salts_size(); ++i) {
    const std::optional<size_t> field = IdField(config.salts(i).field());
    if (!field.has_value() || given[*field]) {
      return absl::InvalidArgumentError(
          absl::StrCat("data.criteo.salts[", i, "].field: expected one of c1 to c", kCriteoIds,
                       " that has no salt yet, found \"", config.salts(i).field(), "\""));
    }
    given[*field] = true;
    columns->ids[*field].hash = ValueHash(FieldSalt(config.salts(i).salt()));
  }
  return absl::OkStatus();
}

absl::StatusOr<CriteoColumns> ColumnsOf(const v1::DataConfig::Criteo& config,
                                        const RecordSchema& schema) {
  CriteoColumns columns;
  for (size_t k = 0; k < columns.ids.size(); ++k) {
    columns.ids[k].hash = ValueHash(FieldSalt(absl::StrCat("c", k + 1)));
  }
  RETURN_IF_ERROR(SetSalts(config, &columns));
  for (size_t i = 0; i < schema.features.size(); ++i) {
    RETURN_IF_ERROR(AddFeature(schema.features[i], i, &columns));
  }
  for (const LabelSpec& label : schema.labels) {
    const bool fits = label.name == kLabel && label.num_classes == 2 && !label.weighs;
    if (schema.labels.size() == 1 && fits) continue;
    return NotCriteo("the label \"label\", 0 or 1",
                     absl::StrCat("\"", label.name, "\" of ", label.num_classes, " classes",
                                  label.weighs ? " as weights" : ""));
  }
  columns.label = !schema.labels.empty();
  return columns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewCriteoFormat(
    const v1::DataConfig::Criteo& config, const RecordSchema& schema) {
  ASSIGN_OR_RETURN(const CriteoColumns columns, ColumnsOf(config, schema));
  return std::make_unique<CriteoFormat>(schema, columns);
}

}  // namespace keelson
