// The command that writes a job's records as columnar files, and what such a file has.
#ifndef KEELSON_CLI_DATA_CONVERT_H_
#define KEELSON_CLI_DATA_CONVERT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"

namespace keelson {

struct ConvertOptions {
  std::string config;         // the file of the job's TrainConfig
  std::string data_dir = {};  // in place of the configuration's
  // The files to write: the records that train, and those that evaluate. Empty: not these.
  std::string train = {};
  std::string eval = {};
};

// Writes the features and labels of the job's records, as its model takes them, and prints how many
// records each file has. INVALID_ARGUMENT: neither file is to be written, or both are the same.
// ALREADY_EXISTS: one is there. Others: those of the configuration, OpenDatasets and Dataset::Read.
absl::Status ConvertRecords(const ConvertOptions& options, FileSystem* file_system,
                            std::ostream* out);

// Checks all of a columnar file, and prints the form and the extremes of each feature and label.
// Errors: ColumnarFile's.
absl::Status DescribeColumnar(const std::string& path, FileSystem* file_system, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_CONVERT_H_
