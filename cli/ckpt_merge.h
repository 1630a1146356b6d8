// Makes a whole snapshot of a delta, for `keelson_ckpt merge`.
#ifndef KEELSON_CLI_CKPT_MERGE_H_
#define KEELSON_CLI_CKPT_MERGE_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

// Writes the snapshot, with what it builds on, as a whole one of the same step into `model_dir`, as
// its newest, from which a job may continue. ALREADY_EXISTS: the directory has a snapshot of that
// step, or a job has the directory. Errors of ResolveSnapshot and MergeChain, after which no file
// of it is left.
absl::Status MergeSnapshot(const std::string& name, const std::string& model_dir, std::ostream* out,
                           ForeignPaths foreign = ForeignPaths::kRefused);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_MERGE_H_
