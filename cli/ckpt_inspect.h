// The commands of keelson_ckpt that look at snapshots: list, show and verify.
#ifndef KEELSON_CLI_CKPT_INSPECT_H_
#define KEELSON_CLI_CKPT_INSPECT_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

// Where a directory's snapshots may be is said by `foreign`.

// One line per snapshot of a model directory, oldest first: step, time of its commit (UTC), bytes
// on disk, tensors; the newest is marked, and so is one whose index or parts are damaged or missing
// (checksums of tensors are not compared). Errors of SnapshotsOf.
absl::Status ListSnapshots(const std::string& directory, std::ostream* out,
                           ForeignPaths foreign = ForeignPaths::kRefused);

// Prints the content of a snapshot: the job's state, its embedding tables, and each tensor with its
// type, shape, size and place. Errors of ResolveSnapshot, BundleReader::Open, ReadKeelsonState and
// StoredTables::Open.
absl::Status ShowSnapshot(const std::string& name, std::ostream* out,
                          ForeignPaths foreign = ForeignPaths::kRefused);

// Prints the elements of a tensor, the last dimension in a line; at most `limit`, 0: all. Errors of
// ResolveSnapshot and BundleReader.
absl::Status ShowValues(const std::string& name, const std::string& tensor, int64_t limit,
                        std::ostream* out, ForeignPaths foreign = ForeignPaths::kRefused);

// Reads all of a snapshot, or of every snapshot of a directory, and prints a line for each problem,
// or for a snapshot without one. False: problems were found. Errors of ResolveSnapshot.
absl::StatusOr<bool> VerifySnapshots(const std::string& name, std::ostream* out,
                                     ForeignPaths foreign = ForeignPaths::kRefused);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_INSPECT_H_
