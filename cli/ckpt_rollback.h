// The command of keelson_ckpt that lets a job go on from an earlier snapshot.
#ifndef KEELSON_CLI_CKPT_ROLLBACK_H_
#define KEELSON_CLI_CKPT_ROLLBACK_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace keelson {

// Makes the snapshot of `step` the newest of `model_dir`, so that the next job there continues from
// it; forgets that a job was done, and the evaluations of later steps, which will be other ones.
// The files of later snapshots stay until a job starts there. Prints what was done. NOT_FOUND: no
// such snapshot; nothing is changed. ALREADY_EXISTS: a job runs there. Otherwise as
// CheckpointDirectory and OwnForChange.
absl::Status RollBack(const std::string& model_dir, int64_t step, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_ROLLBACK_H_
