// The command of keelson_ckpt that writes tensors for other programs.
#ifndef KEELSON_CLI_CKPT_EXPORT_H_
#define KEELSON_CLI_CKPT_EXPORT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct ExportOptions {
  std::string source;  // as OpenTensorSource, with `foreign`
  ForeignPaths foreign = ForeignPaths::kRefused;
  std::string out;
  // "safetensors", "npz" or, of a single table of dim 1, "text" (table_text.h).
  std::string format;
  // Of "text": the table's name; empty: the only one.
  std::string table;
  // All tensors that the format can hold: the optimizer's slots and counters too, and global_step.
  bool slots = false;
  // Replaces `out` if it exists.
  bool force = false;
};

// Writes the model's variables, and of its embedding tables the ids and values of all rows
// (ExportedTables), with unchanged names and types (but see NpzDtype and
// SafetensorsDtype), and prints what was written, in which other types, and what the format cannot
// hold. One tensor is in memory at a time. INVALID_ARGUMENT: an unknown format, no tensors,
// or no such table.
// ALREADY_EXISTS: `out` exists. Otherwise as OpenTensorSource, WriteSafetensors, WriteNpz and
// WriteTableText.
absl::Status ExportTensors(const ExportOptions& options, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_EXPORT_H_
