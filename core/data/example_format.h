// Records of TFRecord files that are tf.Example messages, whose features are the columns.
#ifndef KEELSON_CORE_DATA_EXAMPLE_FORMAT_H_
#define KEELSON_CORE_DATA_EXAMPLE_FORMAT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/record_format.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// An example need not have all columns: one that it has not, or has without a value, is missing.
// `path` is the first of the files, of whose first examples one has each column that the model
// takes: the first 10,000, or those in the first 64 MiB.
//
// INVALID_ARGUMENT: RecordMaker's; a column is in none of the first examples. Others: those of
// reading the file.
absl::StatusOr<std::unique_ptr<const RecordFormat>> NewExampleFormat(const v1::DataConfig& data,
                                                                     const RecordSchema& schema,
                                                                     const std::string& path,
                                                                     FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_EXAMPLE_FORMAT_H_
