// The command of keelson_ckpt that writes the vectors of items or queries, for programs that search
// for the nearest ones.
#ifndef KEELSON_CLI_EXPORT_VECTORS_H_
#define KEELSON_CLI_EXPORT_VECTORS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cli/command_records.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct VectorOptions {
  std::string snapshot;  // as ResolveSnapshot, with `foreign`
  ForeignPaths foreign = ForeignPaths::kRefused;
  // FILE.npz, or any other name: then it is a file of safetensors.
  std::string out;
  // The feature of the kind id that tells them apart.
  std::string feature;
  // The queries' vectors, not the items'.
  bool queries = false;
  // The TrainConfig; empty: train_config.textproto beside the snapshot.
  std::string config_path;
  CommandRecords records;
  int64_t batch_size = 1000;
  // Replaces `out` if it exists.
  bool force = false;
};

// Writes "ids" int64 [n], the distinct ids among the records in the order in which they come, and
// "vectors" float32 [n, dim], of each the output of the layer of items, or of queries, for the
// first record that has it; and prints how many. A score is the product of a query's vector and an
// item's over the temperature. All vectors are in memory. INVALID_ARGUMENT: the model's first loss
// is not of the kind IN_BATCH_SOFTMAX, or has no such feature. ALREADY_EXISTS: `out` exists. Errors
// of ResolveSnapshot, OpenRecords, StoredModel, WriteNpz and WriteSafetensors.
absl::Status ExportVectors(const VectorOptions& options, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_EXPORT_VECTORS_H_
