#include <zip.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/pending_file.h"
#include "core/tensor_files/stand_in_type.h"
#include "core/tensor_files/zip_status.h"

namespace keelson {
namespace {

// 1980-01-01 in a zip archive's dates.
constexpr uint16_t kFirstDate = (1 << 5) | 1;

// A bfloat16 is the upper half of a float32.
std::string Widened(absl::string_view bfloat16) {
  std::string float32(bfloat16.size() * 2, '\0');
  for (size_t i = 0; i < bfloat16.size(); i += 2) std::memcpy(&float32[2 * i + 2], &bfloat16[i], 2);
  return float32;
}

// The source of one array: libzip requests its bytes when it closes the archive.
class ArraySource {
 public:
  ArraySource(const TensorInfo* tensor, TensorSource* source) : tensor_(tensor), source_(source) {
    NpyHeader header;
    header.dtype = NpzDtype(tensor->dtype);
    header.shape = tensor->shape;
    header_ = EncodeNpyHeader(header);
    size_ = header_.size() +
            static_cast<uint64_t>(tensor->shape.num_elements() * DtypeSize(header.dtype));
    zip_error_init(&error_);
  }

  const absl::Status& status() const { return status_; }

  static zip_int64_t Serve(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
    return static_cast<ArraySource*>(self)->Serve(data, size, command);
  }

 private:
  bool widens() const { return tensor_->dtype == BundleDtype::kBfloat16; }

  zip_int64_t Serve(void* data, zip_uint64_t size, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_OPEN:
        return Load();
      case ZIP_SOURCE_READ:
        return Read(static_cast<char*>(data), size);
      case ZIP_SOURCE_CLOSE:
        std::string().swap(elements_);  // An assignment would keep the memory.
        return 0;
      case ZIP_SOURCE_STAT:
        return Stat(static_cast<zip_stat_t*>(data));
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&error_, data, size);
      case ZIP_SOURCE_FREE:
        return 0;
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
      default:
        zip_error_set(&error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

  zip_int64_t Load() {
    absl::StatusOr<std::string> elements = source_->Read(tensor_->name);
    if (!elements.ok()) {
      status_ = elements.status();
      zip_error_set(&error_, ZIP_ER_READ, 0);
      return -1;
    }
    elements_ = widens() ? Widened(*elements) : *std::move(elements);
    position_ = 0;
    return 0;
  }

  zip_int64_t Read(char* out, zip_uint64_t size) {
    zip_uint64_t done = 0;
    while (done < size && position_ < size_) {
      const bool in_header = position_ < header_.size();
      const absl::string_view part = in_header ? header_ : elements_;
      const size_t begin = in_header ? position_ : position_ - header_.size();
      const size_t count = std::min<size_t>(part.size() - begin, size - done);
      std::memcpy(out + done, part.data() + begin, count);
      position_ += count;
      done += count;
    }
    return static_cast<zip_int64_t>(done);
  }

  zip_int64_t Stat(zip_stat_t* stat) const {
    zip_stat_init(stat);
    stat->size = size_;
    stat->valid = ZIP_STAT_SIZE;
    return sizeof(*stat);
  }

  const TensorInfo* const tensor_;
  TensorSource* const source_;
  std::string header_;
  uint64_t size_ = 0;
  std::string elements_;
  size_t position_ = 0;
  absl::Status status_;
  zip_error_t error_;
};

struct Discarder {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

// Adds a member; `array` outlives the archive.
absl::Status AddMember(const std::string& where, const std::string& member, ArraySource* array,
                       zip_t* archive) {
  zip_source_t* source = zip_source_function(archive, &ArraySource::Serve, array);
  if (source == nullptr) return ZipStatus(where, zip_get_error(archive));
  const zip_int64_t index = zip_file_add(archive, member.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    const absl::Status status = ZipStatus(where, zip_get_error(archive));
    zip_source_free(source);
    return status;
  }
  const auto position = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, position, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, position, 0, kFirstDate, 0) != 0) {
    return ZipStatus(where, zip_get_error(archive));
  }
  return absl::OkStatus();
}

// Fills the archive at `temporary`; `path` is for messages.
absl::Status WriteArchive(const std::string& path, const std::string& temporary,
                          const std::vector<TensorInfo>& tensors, TensorSource* source) {
  int code = 0;
  std::unique_ptr<zip_t, Discarder> archive(
      zip_open(temporary.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    return ZipStatus(path, &error);
  }
  std::vector<std::unique_ptr<ArraySource>> arrays;
  for (const TensorInfo& tensor : tensors) {
    arrays.push_back(std::make_unique<ArraySource>(&tensor, source));
    RETURN_IF_ERROR(AddMember(absl::StrCat(path, ": array '", tensor.name, "'"),
                              absl::StrCat(tensor.name, ".npy"), arrays.back().get(),
                              archive.get()));
  }
  if (zip_close(archive.get()) == 0) {
    archive.release();
    return absl::OkStatus();
  }
  for (const std::unique_ptr<ArraySource>& array : arrays) RETURN_IF_ERROR(array->status());
  return ZipStatus(path, zip_get_error(archive.get()));
}

}  // namespace

BundleDtype NpzDtype(BundleDtype dtype) {
  return dtype == BundleDtype::kBfloat16 ? BundleDtype::kFloat32 : StandInType(dtype);
}

absl::Status WriteNpz(const std::string& path, const std::vector<TensorInfo>& tensors,
                      TensorSource* source) {
  PendingFile pending(path);
  RETURN_IF_ERROR(WriteArchive(path, pending.temporary_path(), tensors, source));
  return pending.Commit();
}

}  // namespace keelson
