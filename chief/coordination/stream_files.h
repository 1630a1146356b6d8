// Which files a stream's records are in (DataConfig.stream).
#ifndef KEELSON_CHIEF_COORDINATION_STREAM_FILES_H_
#define KEELSON_CHIEF_COORDINATION_STREAM_FILES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/coordination/record_set.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// The records of a stream are numbered as its files come, so that a number means the same record as
// long as the job lives, also after the files before it were deleted. A pure state machine: no
// threads, no I/O, no time. Not thread-safe.
class StreamFiles {
 public:
  // Those of a snapshot or of a persisted state. DATA_LOSS: they are not one behind the other; the
  // text starts with "_keelson/job: stream_files".
  absl::Status Restore(const v1::JobState& state);

  // The next file, which has this many records (> 0).
  void Add(std::string name, int64_t records);

  // Records that the files have, with those that were forgotten.
  int64_t known() const { return files_.empty() ? 0 : files_.back().end(); }
  // The name of the newest file; empty: there is none.
  std::string newest() const { return files_.empty() ? std::string() : files_.back().name(); }
  // Adds the files that have some of `records` and are not yet the last one of `files`.
  void AddFilesOf(const RecordRange& records, std::vector<v1::StreamFile>* files) const;
  // The files from the one on with the record `first`; the newest one in any case.
  std::vector<v1::StreamFile> From(int64_t first) const;
  // Forgets the files before the one with the record `first`, but not the newest one.
  void ForgetBefore(int64_t first);

 private:
  std::deque<v1::StreamFile> files_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_STREAM_FILES_H_
