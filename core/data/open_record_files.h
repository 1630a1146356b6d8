// Opens the files of records that a DataConfig names.
#ifndef KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_
#define KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/dataset.h"
#include "core/data/file_records.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The source of `config` is one with files (HasNamedFiles), and its data_dir has those that
// train_files and eval_files name (FindDataFiles). Without eval_files the first 80 % of the records
// of train_files train, the rest evaluate. The subsets of `config` then select from these. Of a
// stream no file that trains is opened, nor need there be one. `file_system` outlives the datasets.
// Errors: those of FindDataFiles, SelectRecords, of the format, and of FileRecords::Open or what
// opens such files in its place;
// INVALID_ARGUMENT: there is no data_dir.
absl::StatusOr<Datasets> OpenRecordFiles(const v1::DataConfig& config, const RecordSchema& schema,
                                         FileSystem* file_system = FileSystem::Real());

// The records of some files of text or of TFRecord, the source of `config`. Errors: those of
// FileRecords::Open and of the format.
absl::StatusOr<std::shared_ptr<const FileRecords>> OpenFileRecords(
    const v1::DataConfig& config, const RecordSchema& schema, const std::vector<std::string>& paths,
    FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_OPEN_RECORD_FILES_H_
