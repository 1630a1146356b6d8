#include "core/data/columns/id_column.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/data/columns/number_column.h"
#include "core/data/columns/number_text.h"
#include "core/data/columns/value_hash.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

using v1::DataConfig;

absl::flat_hash_map<std::string, uint64_t> Positions(const DataConfig::Vocabulary& vocabulary) {
  absl::flat_hash_map<std::string, uint64_t> positions;
  for (const std::string& value : vocabulary.values()) positions.emplace(value, positions.size());
  return positions;
}

// A whole number of 64 bits; a negative one is its two's complement.
bool ReadInteger(absl::string_view text, uint64_t* id) {
  constexpr uint64_t kMostNegative = uint64_t{1} << 63;
  const char* const end = text.data() + text.size();
  const bool negative = !text.empty() && text.front() == '-';
  if (ReadWhole(text.data() + (negative ? 1 : 0), end, id) != end) return false;
  if (!negative) return true;
  if (*id > kMostNegative) return false;
  *id = -*id;
  return true;
}

}  // namespace

IdRule::IdRule(const DataConfig::ColumnValues& values, int64_t num_ids)
    : kind_(values.has_vocabulary() ? Kind::kVocabulary
            : values.has_integer()  ? Kind::kInteger
            : values.has_buckets()  ? Kind::kBuckets
                                    : Kind::kHash),
      num_ids_(num_ids),
      hash_(FieldSalt(values.has_hash() ? values.hash().salt() : values.column())),
      vocabulary_(Positions(values.vocabulary())),
      others_(values.vocabulary().others()),
      boundaries_(values.buckets().boundaries().begin(), values.buckets().boundaries().end()),
      integer_missing_(values.integer().has_missing()),
      missing_(values.integer().missing()) {}

bool IdRule::Read(const ValueItem& item, uint64_t* id, std::string* expected) const {
  if (item.kind == ValueItem::Kind::kMissing) {
    *id = IdOfMissing();
    if (kind_ != Kind::kInteger || integer_missing_) return true;
    *expected = "a whole number";
    return false;
  }
  switch (kind_) {
    case Kind::kHash:
      return Hash(item, id, expected);
    case Kind::kVocabulary:
      return Lookup(item, id, expected);
    case Kind::kInteger:
      return Integer(item, id, expected);
    case Kind::kBuckets:
      return Bucket(item, id, expected);
  }
  return false;
}

uint64_t IdRule::IdOfMissing() const {
  switch (kind_) {
    case Kind::kHash:
      return HashOf("");
    case Kind::kVocabulary:
      return vocabulary_.size();
    case Kind::kInteger:
      return missing_;
    case Kind::kBuckets:
      break;
  }
  return boundaries_.size() + 1;
}

bool IdRule::Hash(const ValueItem& item, uint64_t* id, std::string* expected) const {
  const ItemText text(item);
  if (text.view().empty()) {
    *expected = "a text or a whole number";
    return false;
  }
  *id = HashOf(text.view());
  return true;
}

bool IdRule::Lookup(const ValueItem& item, uint64_t* id, std::string* expected) const {
  const ItemText text(item);
  if (text.view().empty()) {
    *expected = "a text or a whole number";
    return false;
  }
  const auto found = vocabulary_.find(text.view());
  *id = found != vocabulary_.end()
            ? found->second
            : vocabulary_.size() + (others_ > 1 ? IdOfHash(hash_.Of(text.view()), others_) : 0);
  return true;
}

bool IdRule::Integer(const ValueItem& item, uint64_t* id, std::string* expected) const {
  const bool whole = item.kind == ValueItem::Kind::kInteger ||
                     (item.kind == ValueItem::Kind::kText && ReadInteger(item.text, id));
  if (item.kind == ValueItem::Kind::kInteger) *id = static_cast<uint64_t>(item.integer);
  if (whole && (num_ids_ == 0 || *id < static_cast<uint64_t>(num_ids_))) return true;
  *expected = num_ids_ == 0 ? "a whole number of 64 bits"
                            : absl::StrCat("a whole number from 0 to ", num_ids_ - 1);
  return false;
}

bool IdRule::Bucket(const ValueItem& item, uint64_t* id, std::string* expected) const {
  float number = 0;
  if (!NumberOf(item, &number)) {
    *expected = "a number";
    return false;
  }
  *id = std::upper_bound(boundaries_.begin(), boundaries_.end(), number) - boundaries_.begin();
  return true;
}

IdColumn::IdColumn(const DataConfig::ColumnValues& values, const FeatureSpec& feature,
                   std::vector<size_t> columns)
    : rule_(values, feature.num_ids),
      columns_(std::move(columns)),
      column_(columns_.front()),
      cross_(values.has_cross()),
      hashes_(!cross_ && rule_.hashes()),
      cross_salt_(FieldSalt(values.cross().salt())),
      num_ids_(feature.num_ids),
      weighted_(feature.weighted),
      separator_(values.separator()),
      weight_separator_(values.weight_separator()),
      max_values_(values.max_values()),
      keep_first_(values.keep_first()) {}

bool IdColumn::ReadAny(absl::Span<const ColumnValue> values, uint64_t* id,
                       ColumnError* error) const {
  if (cross_) return Cross(values, id, error);
  const ColumnValue& value = values[column_];
  ValueItem item;
  if (!OnlyItem(value, &item)) return Fail("one value", absl::StrCat(CountItems(value, "")), error);
  std::string expected;
  return rule_.Read(item, id, &expected) || Fail(std::move(expected), item.FoundText(), error);
}

bool IdColumn::AppendAll(absl::Span<const ColumnValue> values, FeatureValues* bag,
                         ColumnError* error) const {
  const size_t begin = bag->ids.size();
  if (cross_) {
    uint64_t id = 0;
    if (!Cross(values, &id, error)) return false;
    bag->ids.push_back(id);
    if (weighted_) bag->weights.push_back(1);
    return true;
  }
  const ColumnValue& value = values[column_];
  const bool missing = value.kind() == ColumnValue::Kind::kMissing;
  if (missing && rule_.keeps_missing()) return Append(ValueItem(), bag, error);
  if (!ForEachItem(value, separator_,
                   [&](const ValueItem& item) { return Append(item, bag, error); })) {
    return false;
  }
  KeepSome(begin, bag);
  return true;
}

bool IdColumn::Cross(absl::Span<const ColumnValue> values, uint64_t* id, ColumnError* error) const {
  // No text has this length.
  constexpr uint64_t kMissingLength = ~uint64_t{0};
  uint64_t hash = cross_salt_;
  for (const size_t column : columns_) {
    ValueItem item;
    if (!OnlyItem(values[column], &item)) {
      *error = {column, "one value", absl::StrCat(CountItems(values[column], ""))};
      return false;
    }
    const ItemText text(item);
    if (item.kind == ValueItem::Kind::kNumber) {
      *error = {column, "a text or a whole number", item.FoundText()};
      return false;
    }
    hash = item.kind == ValueItem::Kind::kMissing ? MixId(kMissingLength, hash)
                                                  : HashValue(text.view(), hash);
  }
  *id = IdOfHash(hash, num_ids_);
  return true;
}

bool IdColumn::Append(ValueItem item, FeatureValues* bag, ColumnError* error) const {
  float weight = 1;
  if (!weight_separator_.empty() && !TakeWeight(&item, &weight, error)) return false;
  if (item.kind == ValueItem::Kind::kMissing && !rule_.keeps_missing()) return true;
  uint64_t id = 0;
  std::string expected;
  if (!rule_.Read(item, &id, &expected)) return Fail(std::move(expected), item.FoundText(), error);
  bag->ids.push_back(id);
  if (weighted_) bag->weights.push_back(weight);
  return true;
}

bool IdColumn::TakeWeight(ValueItem* item, float* weight, ColumnError* error) const {
  const size_t at = item->text.rfind(weight_separator_);
  if (at == absl::string_view::npos) return true;
  const absl::string_view text = WithoutBlanks(item->text.substr(at + weight_separator_.size()));
  const ValueItem number = ValueItem::Of(text);
  if (!NumberOf(number, weight)) {
    return Fail("a number as the weight", number.FoundText(), error);
  }
  *item = ValueItem::Of(WithoutBlanks(item->text.substr(0, at)));
  return true;
}

void IdColumn::KeepSome(size_t begin, FeatureValues* bag) const {
  const size_t count = bag->ids.size() - begin;
  if (max_values_ == 0 || count <= max_values_) return;
  const auto first = static_cast<ptrdiff_t>(keep_first_ ? begin + max_values_ : begin);
  const auto last = static_cast<ptrdiff_t>(count - max_values_) + first;
  bag->ids.erase(bag->ids.begin() + first, bag->ids.begin() + last);
  if (!weighted_) return;
  bag->weights.erase(bag->weights.begin() + first, bag->weights.begin() + last);
}

bool IdColumn::Fail(std::string expected, std::string found, ColumnError* error) const {
  *error = {column_, std::move(expected), std::move(found)};
  return false;
}

}  // namespace keelson
