// The command of keelson_ckpt that writes a model for programs that predict with ONNX.
#ifndef KEELSON_CLI_EXPORT_ONNX_H_
#define KEELSON_CLI_EXPORT_ONNX_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct OnnxOptions {
  std::string snapshot;  // as ResolveSnapshot, with `foreign`
  ForeignPaths foreign = ForeignPaths::kRefused;
  std::string out;
  // The TrainConfig with the model; empty: train_config.textproto beside the snapshot.
  std::string config_path;
  // Replaces `out` if it exists.
  bool force = false;
};

// Writes the model (MakeOnnxModel) with the snapshot's values, its tables' rows as predictions have
// them, and prints what was written, and of which tables ids without a row are treated otherwise
// than here: those whose initial values are random have their mean there.
// INVALID_ARGUMENT: the configuration's model is not that of the snapshot, or too large for ONNX.
// ALREADY_EXISTS: `out` exists. Errors of ResolveSnapshot, LoadTrainConfig and SnapshotRows.
absl::Status ExportOnnx(const OnnxOptions& options, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_EXPORT_ONNX_H_
