// Ids of a feature that come from one column, or from several that are crossed.
#ifndef KEELSON_CORE_DATA_COLUMNS_ID_COLUMN_H_
#define KEELSON_CORE_DATA_COLUMNS_ID_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/data/columns/column_value.h"
#include "core/data/columns/value_hash.h"
#include "core/data/columns/value_items.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Which id a value is. Immutable.
class IdRule {
 public:
  // `values` is of the kind hash, vocabulary, integer or buckets, and complete (record_plan.h), its
  // vocabulary that of the file where it is one.
  IdRule(const v1::DataConfig::ColumnValues& values, int64_t num_ids);

  // False: it is none that the feature can have, for `expected`.
  bool Read(const ValueItem& item, uint64_t* id, std::string* expected) const;
  // Whether that is the hash of any text, and of an empty one where the value is missing.
  bool hashes() const { return kind_ == Kind::kHash; }
  uint64_t HashOf(absl::string_view text) const { return IdOfHash(hash_.Of(text), num_ids_); }
  // Whether a bag has an id for a value that is missing.
  bool keeps_missing() const { return integer_missing_; }

 private:
  enum class Kind { kHash, kVocabulary, kInteger, kBuckets };

  uint64_t IdOfMissing() const;
  bool Hash(const ValueItem& item, uint64_t* id, std::string* expected) const;
  bool Lookup(const ValueItem& item, uint64_t* id, std::string* expected) const;
  bool Integer(const ValueItem& item, uint64_t* id, std::string* expected) const;
  bool Bucket(const ValueItem& item, uint64_t* id, std::string* expected) const;

  const Kind kind_;
  const int64_t num_ids_;
  const ValueHash hash_;
  const absl::flat_hash_map<std::string, uint64_t> vocabulary_;
  const int64_t others_;
  const std::vector<float> boundaries_;
  const bool integer_missing_;
  const uint64_t missing_;
};

// The ids of one or more columns for a record. Immutable.
class IdColumn {
 public:
  // `columns`: the position in RecordMaker::columns() of the column, of a cross those of all.
  IdColumn(const v1::DataConfig::ColumnValues& values, const FeatureSpec& feature,
           std::vector<size_t> columns);

  // The one id. `values` are those of all columns. False: there are several, or it is none.
  bool ReadOne(absl::Span<const ColumnValue> values, uint64_t* id, ColumnError* error) const {
    const ColumnValue& value = values[column_];
    if (!hashes_ || !value.is_text()) return ReadAny(values, id, error);
    *id = rule_.HashOf(value.text());
    return true;
  }
  // Appends the ids and, of a weighted bag, their weights. False: one is none; some may have been
  // appended.
  bool AppendAll(absl::Span<const ColumnValue> values, FeatureValues* bag,
                 ColumnError* error) const;

 private:
  bool ReadAny(absl::Span<const ColumnValue> values, uint64_t* id, ColumnError* error) const;
  bool Cross(absl::Span<const ColumnValue> values, uint64_t* id, ColumnError* error) const;
  bool Append(ValueItem item, FeatureValues* bag, ColumnError* error) const;
  // Takes the weight off a text.
  bool TakeWeight(ValueItem* item, float* weight, ColumnError* error) const;
  void KeepSome(size_t begin, FeatureValues* bag) const;
  bool Fail(std::string expected, std::string found, ColumnError* error) const;

  const IdRule rule_;
  const std::vector<size_t> columns_;
  const size_t column_;  // the first one
  const bool cross_;
  const bool hashes_;  // one column, by the hash of its text
  const uint64_t cross_salt_;
  const int64_t num_ids_;
  const bool weighted_;
  const std::string separator_;
  const std::string weight_separator_;
  const size_t max_values_;
  const bool keep_first_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_ID_COLUMN_H_
