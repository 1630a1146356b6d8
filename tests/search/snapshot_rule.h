// What must be true of each snapshot that is committed.
#ifndef KEELSON_TESTS_SEARCH_SNAPSHOT_RULE_H_
#define KEELSON_TESTS_SEARCH_SNAPSHOT_RULE_H_

#include <cstddef>
#include <string>

#include "core/checkpoint/bundle_reader.h"

namespace keelson {

// A job can be restored from it: every byte is what its checksum says, and the parts of all
// `servers` shards and the job state are there and have the same committed round. No part has
// sequences of more members than there are `workers`, or more runs of a member than it has
// blocks and partitions of rows.
// Returns what is wrong; empty: nothing.
std::string CheckSnapshot(const BundleReader& snapshot, size_t servers, size_t workers);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_SNAPSHOT_RULE_H_
