// Opens the files of records that a DataConfig names.
#ifndef KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_
#define KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The source of `config` is libsvm, criteo, csv or tf_record, and its data_dir has the files that
// train_files and eval_files name (FindDataFiles). Without eval_files the first 80 % of the records
// of train_files train, the rest evaluate. The subsets of `config` then select from these.
// `file_system` outlives the datasets.
// Errors: those of FindDataFiles, FileRecords::Open, SelectRecords and of the format;
// INVALID_ARGUMENT: there is no data_dir.
absl::StatusOr<Datasets> OpenRecordFiles(const v1::DataConfig& config, const RecordSchema& schema,
                                         FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_
