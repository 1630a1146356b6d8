// Makes of a delta and what it builds on the whole snapshot that could have been written instead.
#ifndef KEELSON_CORE_CHECKPOINT_CHAIN_MERGE_H_
#define KEELSON_CORE_CHECKPOINT_CHAIN_MERGE_H_

#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {

// Writes the snapshot at `prefix`, file for file and byte for byte what the servers and the chief
// would have written of the same cut; of a whole one a copy. Takes the memory of one partition's
// rows of one table, with those of the bases, or of a variable's part. INVALID_ARGUMENT: the bundle
// is not one of Keelson's jobs. Errors of StoredTables and BundleDataWriter; files of this prefix
// may be left behind then.
absl::Status MergeChain(const BundleReader& bundle, const std::string& prefix,
                        FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_CHAIN_MERGE_H_
