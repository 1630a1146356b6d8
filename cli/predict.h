// The command that scores records with a snapshot's model.
#ifndef KEELSON_CLI_PREDICT_H_
#define KEELSON_CLI_PREDICT_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cli/command_records.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct PredictOptions {
  std::string snapshot;  // as ResolveSnapshot, with `foreign`
  ForeignPaths foreign = ForeignPaths::kRefused;
  // The TrainConfig; empty: train_config.textproto beside the snapshot.
  std::string config_path;
  CommandRecords records;
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
// ALREADY_EXISTS: the file to write exists. Errors of ResolveSnapshot, OpenRecords and StoredModel;
// what is written then is incomplete, and a file is not made.
absl::Status PredictRecords(const PredictOptions& options, std::ostream* out, std::ostream* log);

}  // namespace keelson

#endif  // KEELSON_CLI_PREDICT_H_
