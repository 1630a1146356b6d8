#include "core/tensor_files/zip_status.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

absl::StatusCode CodeOf(const zip_error_t& error) {
  switch (zip_error_code_zip(&error)) {
    case ZIP_ER_NOENT:
      return absl::StatusCode::kNotFound;
    case ZIP_ER_NOZIP:
    case ZIP_ER_INCONS:
    case ZIP_ER_CRC:
    case ZIP_ER_EOF:
    case ZIP_ER_ZLIB:
    case ZIP_ER_COMPRESSED_DATA:
      return absl::StatusCode::kDataLoss;
    case ZIP_ER_COMPNOTSUPP:
    case ZIP_ER_ENCRNOTSUPP:
    case ZIP_ER_NOPASSWD:
    case ZIP_ER_MULTIDISK:
      return absl::StatusCode::kUnimplemented;
    default:
      break;
  }
  const bool full =
      zip_error_system_type(&error) == ZIP_ET_SYS &&
      (zip_error_code_system(&error) == ENOSPC || zip_error_code_system(&error) == EDQUOT);
  return full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable;
}

}  // namespace

absl::Status ZipStatus(absl::string_view where, zip_error_t* error) {
  return absl::Status(CodeOf(*error), absl::StrCat(where, ": ", zip_error_strerror(error)));
}

}  // namespace keelson
