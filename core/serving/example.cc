#include "core/serving/example.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/serving/json_values.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

constexpr char kField[] = "features";
// A record's ids take memory and time: far more than a record has.
constexpr size_t kMaxIds = 65536;

std::string At(absl::string_view where, size_t position) {
  return absl::StrCat(where, "[", position, "]");
}

const Json* MemberOf(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

absl::StatusOr<float> ReadNumber(const std::string& where, const Json& value) {
  if (!value.is_number()) return WrongValue(where, "a number", FoundText(&value));
  const double number = value.get<double>();
  // Written so that not-a-number fails too.
  if (std::abs(number) <= std::numeric_limits<float>::max()) return static_cast<float>(number);
  return WrongValue(where, "a number that a float can hold", FoundText(&value));
}

bool IsDigits(absl::string_view text) {
  return text.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::StatusOr<uint64_t> ReadId(const FeatureSpec& feature, const std::string& where,
                                const Json* value) {
  const uint64_t most = feature.num_ids == 0 ? std::numeric_limits<uint64_t>::max()
                                             : static_cast<uint64_t>(feature.num_ids) - 1;
  if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= most) {
    return value->get<uint64_t>();
  }
  uint64_t id = 0;
  if (value != nullptr && value->is_string() && IsDigits(value->get_ref<const std::string&>()) &&
      absl::SimpleAtoi(value->get_ref<const std::string&>(), &id) && id <= most) {
    return id;
  }
  return WrongValue(where, absl::StrCat("an id from 0 to ", most), FoundText(value));
}

absl::Status ReadNumbers(const FeatureSpec& feature, const std::string& where, const Json* list,
                         absl::Span<float> out) {
  if (list == nullptr || !list->is_array()) {
    return WrongValue(where, "a list of numbers", FoundText(list));
  }
  if (list->size() != out.size()) {
    return WrongValue(where, absl::StrCat(out.size(), " numbers for ", feature.shape.ToString()),
                      absl::StrCat(list->size()));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    ASSIGN_OR_RETURN(out[i], ReadNumber(At(where, i), (*list)[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadIds(const FeatureSpec& feature, const std::string& where, const Json* list,
                     std::vector<uint64_t>* out) {
  if (list == nullptr || !list->is_array())
    return WrongValue(where, "a list of ids", FoundText(list));
  if (list->size() > kMaxIds) {
    return WrongValue(where, absl::StrCat("at most ", kMaxIds, " ids"), absl::StrCat(list->size()));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t id, ReadId(feature, At(where, i), &(*list)[i]));
    out->push_back(id);
  }
  return absl::OkStatus();
}

absl::Status ReadWeights(const std::string& where, const Json& list, std::vector<float>* out) {
  if (!list.is_array()) return WrongValue(where, "a list of numbers", FoundText(&list));
  if (list.size() != out->size()) {
    return WrongValue(where, absl::StrCat("a weight for each of the ", out->size(), " ids"),
                      absl::StrCat(list.size()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN((*out)[i], ReadNumber(At(where, i), list[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadBag(const FeatureSpec& feature, const std::string& where, const Json* value,
                     FeatureValues* out) {
  const bool with_names = value != nullptr && value->is_object();
  const Json* const ids = with_names ? MemberOf(*value, "ids") : value;
  const std::string ids_where = with_names ? absl::StrCat(where, ".ids") : where;
  RETURN_IF_ERROR(ReadIds(feature, ids_where, ids, &out->ids));
  out->offsets = {0, static_cast<int64_t>(out->ids.size())};
  if (feature.weighted) out->weights.assign(out->ids.size(), 1.0f);
  if (!with_names) return absl::OkStatus();
  for (const auto& entry : value->items()) {
    if (entry.key() == "ids") continue;
    const std::string found = FoundText(&entry.value());
    if (entry.key() != "weights" || !feature.weighted) {
      return WrongValue(where,
                        feature.weighted ? "ids and weights" : "ids alone, for it has no weights",
                        absl::StrCat("\"", entry.key().substr(0, kQuotedJsonBytes), "\""));
    }
    RETURN_IF_ERROR(ReadWeights(absl::StrCat(where, ".weights"), entry.value(), &out->weights));
  }
  return absl::OkStatus();
}

absl::Status ReadFeature(const FeatureSpec& feature, const std::string& where, const Json* value,
                         FeatureValues* out) {
  switch (feature.kind) {
    case FeatureKind::kNumbers:
      return ReadNumbers(feature, where, value,
                         absl::MakeSpan(out->numbers.data(), out->numbers.size()));
    case FeatureKind::kId: {
      ASSIGN_OR_RETURN(out->ids.front(), ReadId(feature, where, value));
      return absl::OkStatus();
    }
    case FeatureKind::kBag:
      return ReadBag(feature, where, value, out);
  }
  return absl::InternalError("a feature of no kind");
}

// Refuses names that no feature has.
absl::Status CheckNames(const RecordSchema& records, const Json& features) {
  for (const auto& entry : features.items()) {
    const bool known =
        std::any_of(records.features.begin(), records.features.end(),
                    [&](const FeatureSpec& feature) { return feature.name == entry.key(); });
    if (known) continue;
    return WrongValue(kField, records.FeaturesText(),
                      absl::StrCat("\"", entry.key().substr(0, kQuotedJsonBytes), "\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Batch> ReadExample(const RecordSchema& records, const nlohmann::json& body) {
  Batch batch;
  Resize(1, records, &batch);
  const Json* const features = MemberOf(body, kField);
  if (features == nullptr || !features->is_object()) {
    const FeatureSpec* const only = records.only_numbers();
    if (only == nullptr) {
      return WrongValue(kField, absl::StrCat("an object with ", records.FeaturesText()),
                        FoundText(features));
    }
    RETURN_IF_ERROR(ReadFeature(*only, kField, features, &batch.features.front()));
    return batch;
  }
  RETURN_IF_ERROR(CheckNames(records, *features));
  for (size_t i = 0; i < records.features.size(); ++i) {
    const FeatureSpec& feature = records.features[i];
    RETURN_IF_ERROR(ReadFeature(feature, absl::StrCat(kField, ".", feature.name),
                                MemberOf(*features, feature.name), &batch.features[i]));
  }
  return batch;
}

}  // namespace keelson
