// The command that scores records with a snapshot's model.
#ifndef KEELSON_CLI_PREDICT_H_
#define KEELSON_CLI_PREDICT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct PredictOptions {
  std::string snapshot;  // as ResolveSnapshot, with `foreign`
  ForeignPaths foreign = ForeignPaths::kRefused;
  // The TrainConfig; empty: train_config.textproto beside the snapshot.
  std::string config_path;
  // In place of the configuration's.
  std::string data_dir;
  // Names of files in data_dir, with "*" for any characters: all of their records are scored. None:
  // the records that evaluate, or with `train` those that train.
  std::vector<std::string> files;
  bool train = false;
  // The records have no labels.
  bool no_labels = false;
  int64_t limit = 0;  // of records; 0: all
  int64_t batch_size = 1000;
  int threads = 0;  // of the device; 0: one per core
  bool json = false;
  bool features = false;
  std::string out;  // the file to write; empty: `out`
  bool force = false;
};

// Writes a line for each record, in their order (PredictionText), and a summary to `log`: how many,
// how fast, and which snapshot. While one batch is computed the next one is read.
// INVALID_ARGUMENT: `files` of generated records or IDX files. ALREADY_EXISTS: the file to write
// exists. Errors of ResolveSnapshot, OpenDatasets and StoredModel; what is written then is
// incomplete, and a file is not made.
absl::Status PredictRecords(const PredictOptions& options, std::ostream* out, std::ostream* log);

}  // namespace keelson

#endif  // KEELSON_CLI_PREDICT_H_
