// Lines of Criteo's click logs: a label, 13 counts and 26 strings, separated by tabs.
#ifndef KEELSON_CORE_DATA_CRITEO_FORMAT_H_
#define KEELSON_CORE_DATA_CRITEO_FORMAT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/data/record_format.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

inline constexpr int64_t kCriteoNumbers = 13;
inline constexpr int64_t kCriteoIds = 26;

// A model takes some of these:
//   - the feature "numbers" [13]: log(1 + x) of a count x, of one that is negative or missing 0;
//   - the feature "missing" [13]: 1 where the count is missing, otherwise 0;
//   - the features "c1" to "c26", each an id: HashValue (value_hash.h) of the string, which may be
//     missing (an empty one is a value too), with the field's name as the salt or that of `salts`;
//     IdOfHash of it where the feature's embeddings have a number of rows;
//   - the label "label", 0 or 1.
// All columns are checked, whatever the model takes: a label, whole numbers of at most 18 digits.
// Format: https://www.kaggle.com/c/criteo-display-ad-challenge/data.
//
// INVALID_ARGUMENT, naming the field: the model takes other features or labels; a salt of a field
// that there is not, or of one that has a salt already.
absl::StatusOr<std::unique_ptr<const RecordFormat>> NewCriteoFormat(
    const v1::DataConfig::Criteo& config, const RecordSchema& schema);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_CRITEO_FORMAT_H_
