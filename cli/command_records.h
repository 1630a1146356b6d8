// The records that a command computes something of with a snapshot's model.
#ifndef KEELSON_CLI_COMMAND_RECORDS_H_
#define KEELSON_CLI_COMMAND_RECORDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct CommandRecords {
  // In place of the configuration's, unless it is empty.
  std::string data_dir;
  // Names of files in data_dir, with "*" for any characters: all of their records are taken. None:
  // the records that evaluate, or with `train` those that train.
  std::vector<std::string> files;
  bool train = false;
  // The records have no labels, or they are not needed.
  bool no_labels = false;
};

// INVALID_ARGUMENT: `files` of generated records or IDX files. Errors of OpenDatasets.
absl::StatusOr<std::unique_ptr<Dataset>> OpenRecords(const CommandRecords& records,
                                                     const v1::TrainConfig& config,
                                                     RecordSchema schema);

}  // namespace keelson

#endif  // KEELSON_CLI_COMMAND_RECORDS_H_
