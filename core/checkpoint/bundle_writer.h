// Writes the data files of a TensorBundle, TensorFlow's checkpoint format: every parameter server
// writes one, then the chief writes the index that makes them a bundle (bundle_index.h). It is
// readable by tf.train.load_checkpoint; partitioned variables are stored as slices along axis 0.
// Format: tensorflow/core/util/tensor_bundle/tensor_bundle.h.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_WRITER_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/shape.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Writes one data file, to a file or to a sink that carries its bytes elsewhere. Not thread-safe.
//
// All methods return INVALID_ARGUMENT for a name that is empty, begins with a zero byte or was
// added before, and for values that do not fit the shape; otherwise the errors of file.h. After an
// error, all later calls return it. FAILED_PRECONDITION: a call out of order.
class BundleDataWriter {
 public:
  // Writes to a file with a temporary name beside `final_path` ("….tempstate<random>"), which is
  // renamed in Finish. A writer that is destroyed before removes the file. `data_shard`: the number
  // of the file within the bundle, from 0. `file_system` outlives the writer.
  static absl::StatusOr<std::unique_ptr<BundleDataWriter>> Create(FileSystem* file_system,
                                                                  std::string final_path,
                                                                  size_t data_shard);
  // Writes the bytes of the data file in order to a sink. Finish closes it.
  static std::unique_ptr<BundleDataWriter> CreateOn(std::unique_ptr<AppendFile> sink,
                                                    size_t data_shard);
  ~BundleDataWriter();
  BundleDataWriter(const BundleDataWriter&) = delete;
  BundleDataWriter& operator=(const BundleDataWriter&) = delete;

  absl::Status AddTensor(absl::string_view name, const Shape& shape,
                         absl::Span<const float> values);

  // Begins rows [row_begin, row_end) of a tensor of float32, int64 or int32, whose values follow in
  // pieces of any size. Rows that are the whole tensor become a plain entry. Several slices of one
  // tensor may be added, each with the same `full_shape` and type. No other call may stand between
  // Begin and End.
  absl::Status BeginSlice(absl::string_view name, const Shape& full_shape, int64_t row_begin,
                          int64_t row_end, BundleDtype dtype = BundleDtype::kFloat32);
  // Of the slice's type.
  absl::Status AppendValues(absl::Span<const float> values);
  absl::Status AppendValues(absl::Span<const int64_t> values);
  absl::Status AppendValues(absl::Span<const int32_t> values);
  absl::Status EndSlice();

  // Scalars.
  absl::Status AddInt64(absl::string_view name, int64_t value);
  absl::Status AddFloatScalar(absl::string_view name, float value);
  absl::Status AddString(absl::string_view name, absl::string_view bytes);

  // Makes the file durable under its final name (closes the sink), and returns its part of the
  // index, sorted by key. The last call. UNAVAILABLE: storage does not find the file that was
  // written (as caches of network file systems may), or somebody has removed it.
  absl::StatusOr<std::vector<BundleIndexEntry>> Finish();

  int64_t bytes_written() const { return offset_; }

 private:
  struct OpenSlice {
    std::string name;
    BundleDtype dtype;
    Shape full_shape;
    int64_t row_begin;
    int64_t row_end;
    int64_t start_offset;
    int64_t missing;  // elements
    uint32_t crc = 0;
  };

  BundleDataWriter(FileSystem* file_system, std::string final_path, std::string temporary_path,
                   size_t data_shard, std::unique_ptr<AppendFile> file);

  // Remembers the first error.
  absl::Status Record(absl::Status status);
  absl::Status CheckReady() const;
  absl::Status Append(absl::string_view bytes);
  absl::Status DoBeginSlice(absl::string_view name, const Shape& full_shape, int64_t row_begin,
                            int64_t row_end, BundleDtype dtype);
  // `bytes` are values of that type.
  absl::Status AppendToSlice(BundleDtype dtype, absl::string_view bytes);
  absl::Status DoEndSlice();
  absl::Status DoFinish();
  // A tensor whose bytes follow, with their unmasked checksum.
  absl::Status AddWhole(absl::string_view name, BundleDtype dtype, const Shape& shape,
                        absl::string_view bytes, uint32_t crc);
  absl::Status AddEntry(std::string key, absl::string_view name, v1::BundleEntry entry);
  absl::Status AddSliceOf(const OpenSlice& slice, const TensorSliceSpec& spec);
  v1::BundleEntry MakeEntry(BundleDtype dtype, const Shape& shape, int64_t start_offset,
                            uint32_t crc) const;

  FileSystem* const file_system_;  // null: a sink
  const std::string final_path_;   // of a sink: its name in errors
  const std::string temporary_path_;
  const size_t data_shard_;
  std::unique_ptr<AppendFile> file_;  // null once finished
  int64_t offset_ = 0;
  std::optional<OpenSlice> slice_;
  std::map<std::string, v1::BundleEntry> entries_;
  absl::Status status_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_WRITER_H_
