// The part of a data set that a configuration selects.
#ifndef KEELSON_CORE_DATA_RECORD_SELECTION_H_
#define KEELSON_CORE_DATA_RECORD_SELECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Records [begin, end).
struct RecordSelection {
  int64_t begin = 0;
  int64_t end = 0;
};

// The records in `all` that `subset`, the value of data.`field`, selects. `where` has them: a
// file's path. INVALID_ARGUMENT: it is not within them, or there is none.
absl::StatusOr<RecordSelection> SelectRecords(const v1::DataConfig::Subset& subset,
                                              absl::string_view field, const std::string& where,
                                              RecordSelection all);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_SELECTION_H_
