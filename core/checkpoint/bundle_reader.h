// Reads a TensorBundle, Keelson's or TensorFlow's, in any sharding: the caller asks for elements of
// a tensor, the reader finds them in the slices that are stored.
// Format: tensorflow/core/util/tensor_bundle/tensor_bundle.h.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_READER_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_READER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/bundle_format.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace keelson {

struct TensorInfo {
  std::string name;
  BundleDtype dtype;
  Shape shape;
};

// Thread-safe. Holds all files of the bundle open: a bundle that is deleted meanwhile stays
// readable.
//
// Errors of reading, each with the file and the tensor: NOT_FOUND: no such tensor. DATA_LOSS: a
// checksum or a length is wrong. INVALID_ARGUMENT: the elements or the type asked for are not the
// tensor's. UNIMPLEMENTED: a type of elements whose size or checksum is not known (DtypeSize,
// ChecksumIsOfStoredBytes). The checksum of every stored slice that is touched, as a whole, has
// been verified when a method returns OK.
class BundleReader {
 public:
  // Reads and checks the index, opens all data files and checks their sizes.
  // NOT_FOUND: a file is missing. DATA_LOSS: the index is damaged or makes no sense, a data file
  // has not the size that follows from the index.
  // UNIMPLEMENTED: a big-endian bundle, or one for newer readers.
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(
      const std::string& prefix, FileSystem* file_system = FileSystem::Real());

  // Sorted by name.
  std::vector<TensorInfo> List() const;
  bool Contains(absl::string_view name) const;
  absl::StatusOr<TensorInfo> Info(absl::string_view name) const;
  // The tensors, and their positions in the data files.
  const BundleContents& contents() const { return contents_; }

  // Reads any numeric type as float32 (element_conversion.h).
  // Elements [first, first + out.size()), row-major.
  absl::Status ReadElements(absl::string_view name, int64_t first, absl::Span<float> out) const;
  absl::StatusOr<Tensor> ReadTensor(absl::string_view name) const;

  // Reads elements [first, first + out.size()) of a tensor of just this type.
  absl::Status ReadInt64s(absl::string_view name, int64_t first, absl::Span<int64_t> out) const;
  absl::Status ReadInt32s(absl::string_view name, int64_t first, absl::Span<int32_t> out) const;

  // The elements [first, first + count) of a tensor of just this type where they lie, at any
  // address, valid as long as this; null: they are not one run of a file that can be mapped
  // (RandomAccessFile::Map), so that they must be read.
  absl::StatusOr<const char*> MapElements(absl::string_view name, BundleDtype dtype, int64_t first,
                                          int64_t count) const;

  // Reads all elements as stored: little-endian, row-major. A tensor of a type whose size is not
  // known must be stored as one slice.
  absl::StatusOr<std::string> ReadBytes(absl::string_view name) const;
  // Reads all elements of a string tensor, row-major.
  absl::StatusOr<std::vector<std::string>> ReadStrings(absl::string_view name) const;

  // Reads a tensor with one element; the integer may be an int32 too.
  absl::StatusOr<int64_t> ReadInt64(absl::string_view name) const;
  absl::StatusOr<std::string> ReadString(absl::string_view name) const;

  // Verifies every checksum of every data file.
  absl::Status VerifyAll() const;

  const std::string& prefix() const { return prefix_; }
  // That Open got.
  FileSystem* file_system() const { return file_system_; }

 private:
  BundleReader(std::string prefix, BundleContents contents, FileSystem* file_system)
      : prefix_(std::move(prefix)), contents_(std::move(contents)), file_system_(file_system) {}

  absl::Status OpenDataFiles();
  std::string DataPathOf(const StoredSlice& slice) const;

  absl::StatusOr<const StoredTensor*> Find(absl::string_view name) const;
  absl::StatusOr<const StoredTensor*> FindNumeric(absl::string_view name) const;
  // INVALID_ARGUMENT: the tensor does not have the elements [first, first + count).
  absl::Status CheckRange(const StoredTensor& tensor, int64_t first, int64_t count) const;
  absl::StatusOr<const StoredTensor*> FindExactly(absl::string_view name, BundleDtype dtype,
                                                  int64_t first, int64_t count) const;
  absl::Status ReadExactly(absl::string_view name, BundleDtype dtype, int64_t first, int64_t count,
                           void* out) const;
  absl::Status WrongType(const StoredTensor& tensor, absl::string_view expected) const;
  absl::Status DamagedTensor(const StoredTensor& tensor, const StoredSlice& slice,
                             absl::string_view what) const;
  absl::Status CheckCrc(const StoredTensor& tensor, const StoredSlice& slice, uint32_t crc) const;
  // Reads bytes of a slice without verifying them.
  absl::Status ReadUnverified(const StoredTensor& tensor, const StoredSlice& slice, uint64_t begin,
                              uint64_t size, char* out) const;
  // Reads and verifies all bytes of a slice; into `out` unless that is null.
  absl::Status ReadWhole(const StoredTensor& tensor, const StoredSlice& slice, char* out) const;
  // Reads all of a slice unless it was verified.
  absl::Status EnsureVerified(const StoredTensor& tensor, const StoredSlice& slice) const;
  // Reads the bytes [begin, begin + size) of a slice, which it verifies first if that was not done.
  absl::Status ReadPart(const StoredTensor& tensor, const StoredSlice& slice, uint64_t begin,
                        uint64_t size, char* out) const;
  // Read the elements [first, first + count) of the tensor as stored; the second method copies
  // those in `slice` to their place in `out`.
  absl::Status ReadStored(const StoredTensor& tensor, int64_t first, int64_t count,
                          char* out) const;
  absl::Status ReadFromSlice(const StoredTensor& tensor, const StoredSlice& slice, int64_t first,
                             int64_t count, char* out) const;
  absl::StatusOr<std::string> ReadOpaqueBytes(const StoredTensor& tensor) const;
  absl::Status ReadAsFloat(const StoredTensor& tensor, int64_t first, absl::Span<float> out) const;
  absl::StatusOr<std::vector<std::string>> ReadSliceStrings(const StoredTensor& tensor,
                                                            const StoredSlice& slice) const;
  absl::Status Verify(const StoredTensor& tensor, const StoredSlice& slice) const;

  const std::string prefix_;
  const BundleContents contents_;
  FileSystem* const file_system_;
  std::vector<std::unique_ptr<RandomAccessFile>> files_;  // null: holds nothing
  mutable Mutex mu_;
  // Slices whose checksum was verified.
  mutable std::set<const StoredSlice*> verified_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_READER_H_
