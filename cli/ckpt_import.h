// The command of keelson_ckpt that makes a snapshot from imported tensors, from which a job starts:
// a warm start, or fine-tuning.
#ifndef KEELSON_CLI_CKPT_IMPORT_H_
#define KEELSON_CLI_CKPT_IMPORT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

struct ImportOptions {
  // As OpenTensorSource, with `foreign`; or FILE.txt, a table of dim 1 (table_text.h).
  std::string source;
  // Of such a text: the table's name; empty: the model's only table of dim 1.
  std::string table;
  ForeignPaths foreign = ForeignPaths::kRefused;
  std::string model_dir;
  // "old=new": the tensor `old` becomes the variable `new`, or the table likewise.
  std::vector<std::string> renames;
  int64_t step = 0;  // >= 0; the snapshot's, and where the job's count begins
  // A TrainConfig file: imports only the variables and tables of its model, and checks their
  // shapes. Empty: imports all that TensorSource::Variables returns, and a snapshot's tables.
  std::string config_path;
  // Variables of the model that the source lacks get their initial values (initial_values,
  // train.seed), and such tables have no rows; needs `config_path`.
  bool initialize_missing = false;
  // Adds to a directory that holds snapshots, as their newest, and removes the marker of a job that
  // is done.
  bool force = false;
  // Refuses numbers that are not finite or that float32 cannot hold, instead of warning of them.
  bool strict = false;
};

// Writes "model.ckpt-<step>" with one data file into `model_dir`, which is created, and commits it;
// prints what was imported. Variables are float32: other numbers are rounded to it, which is
// printed, with the number of those that become infinite, of integers that change, and of those
// that were not finite already. Slots are not imported, so the optimizer starts from its initial
// state; and there is no job state, so the data starts from the beginning. Holds one tensor in
// memory at a time, or a table's ids and values (WriteImportedTable). Not for a directory in which
// a job runs.
//
// INVALID_ARGUMENT: an option that makes no sense; with `strict`, numbers as above; a variable of
// the model is missing or has another shape (all are named), or PlanTables'; nothing to import.
// ALREADY_EXISTS: the directory holds snapshots or a job that is done, and `force` is not set; or
// it has a snapshot of that step in any case. Otherwise as OpenTensorSource, TensorSource::Read,
// ResolveTrainConfig and CheckpointDirectory::Commit. Nothing of the snapshot stays after an error.
absl::Status ImportTensors(const ImportOptions& options, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_IMPORT_H_
