// NumPy's .npz: a zip archive of .npy files, one per array, "NAME.npy".
// Format: numpy/lib/npyio.py (savez), npy_header.h.
#ifndef KEELSON_CORE_TENSOR_FILES_NPZ_H_
#define KEELSON_CORE_TENSOR_FILES_NPZ_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor_files/npy_header.h"
#include "core/tensor_files/tensor_source.h"

struct zip;

namespace keelson {

class NpzFile : public TensorSource {
 public:
  // A compressed array may expand to this many bytes; what is not compressed, to the file's size.
  static constexpr uint64_t kMaxCompressedArrayBytes = uint64_t{1} << 30;

  // Reads the archive's directory and the header of every array; other members are ignored.
  // DATA_LOSS, with the file and the array: not such an archive, a member that is not a .npy file,
  // is listed twice, is too large (above) or has not the size that its shape asks for.
  // UNIMPLEMENTED: an array of strings, objects, structures or big-endian numbers; an encrypted
  // member, or one of an unknown compression. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: the file
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<NpzFile>> Open(const std::string& path);
  // The same with those arrays alone for whose names `wanted` returns true; it is called for each.
  // Others may be of any type.
  static absl::StatusOr<std::unique_ptr<NpzFile>> Open(
      const std::string& path, absl::FunctionRef<bool(absl::string_view)> wanted);

  std::vector<TensorInfo> List() const override;
  // Arrays in Fortran order come in C order. DATA_LOSS: the checksum is wrong, too.
  absl::StatusOr<std::string> Read(absl::string_view name) override;

 private:
  struct Array {
    uint64_t index;  // in the archive
    size_t header_bytes;
    NpyHeader header;
  };
  struct Closer {
    void operator()(zip* archive) const;
  };

  NpzFile(std::string path, uint64_t file_bytes, std::unique_ptr<zip, Closer> archive)
      : path_(std::move(path)), file_bytes_(file_bytes), archive_(std::move(archive)) {}

  absl::Status ReadDirectory(absl::FunctionRef<bool(absl::string_view)> wanted);
  absl::Status CheckMemberBytes(absl::string_view name, uint64_t member_bytes,
                                bool compressed) const;
  absl::StatusOr<Array> ReadArrayHeader(uint64_t index, absl::string_view name,
                                        uint64_t member_bytes);

  const std::string path_;
  const uint64_t file_bytes_;
  const std::unique_ptr<zip, Closer> archive_;
  std::map<std::string, Array, std::less<>> arrays_;
};

// The type that a tensor of this type has in such a file: float32 for bfloat16, StandInType for
// others that numpy has not.
BundleDtype NpzDtype(BundleDtype dtype);

// Writes `tensors` of `source`, of types of a fixed size, to `path`, one at a time, uncompressed,
// as numpy.savez does. The file appears complete or not at all, and the same tensors give the same
// bytes. UNAVAILABLE or RESOURCE_EXHAUSTED: the file cannot be written. Otherwise as
// TensorSource::Read.
absl::Status WriteNpz(const std::string& path, const std::vector<TensorInfo>& tensors,
                      TensorSource* source);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_NPZ_H_
