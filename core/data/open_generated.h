// Opens the generated records that a DataConfig names.
#ifndef KEELSON_CORE_DATA_OPEN_GENERATED_H_
#define KEELSON_CORE_DATA_OPEN_GENERATED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Records that depend on `seed`, of the kind of config.source (digits by default), of which the
// subsets of `config` select. INVALID_ARGUMENT: a number of records is out of range; a subset is
// outside the set; `schema` is not that of the records.
absl::StatusOr<Datasets> OpenGenerated(const v1::DataConfig& config, const RecordSchema& schema,
                                       uint64_t seed);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_OPEN_GENERATED_H_
