// A directory into which files of records come while a job trains (DataConfig.stream).
#ifndef KEELSON_CORE_DATA_STREAM_STREAM_DIRECTORY_H_
#define KEELSON_CORE_DATA_STREAM_STREAM_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/file_records.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The number of records of a stream, whose end nobody knows: more than it will ever have.
inline constexpr int64_t kStreamRecords = int64_t{1} << 62;

// Immutable; any number of threads may use it together.
class StreamDirectory {
 public:
  // `config` has a stream of files that train (train_files) in data_dir. `file_system` outlives
  // this.
  StreamDirectory(v1::DataConfig config, RecordSchema schema, FileSystem* file_system)
      : config_(std::move(config)), schema_(std::move(schema)), file_system_(file_system) {}

  // The name of the first file behind `newest` in the order of names; nullopt: there is none yet.
  // Files that evaluate are none of the stream. Errors: the file system's.
  absl::StatusOr<std::optional<std::string>> FileBehind(const std::string& newest) const;
  // Whether the file that ends the stream is there: no other file follows.
  absl::StatusOr<bool> HasEnded() const;
  // The records of a file; of each file max_bad_records are left out at most. Errors:
  // FileRecords::Open's, and those of the format.
  absl::StatusOr<std::shared_ptr<const FileRecords>> Open(const std::string& name) const;
  std::string PathOf(const std::string& name) const;

 private:
  const v1::DataConfig config_;
  const RecordSchema schema_;
  FileSystem* const file_system_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_STREAM_STREAM_DIRECTORY_H_
