// Errors of libzip as statuses.
#ifndef KEELSON_CORE_TENSOR_FILES_ZIP_STATUS_H_
#define KEELSON_CORE_TENSOR_FILES_ZIP_STATUS_H_

#include <zip.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// `where` and libzip's words. NOT_FOUND: no such member. DATA_LOSS: not an archive, or damaged.
// UNIMPLEMENTED: encrypted, in several parts, or of an unknown compression. RESOURCE_EXHAUSTED: the
// disk is full. Otherwise UNAVAILABLE.
absl::Status ZipStatus(absl::string_view where, zip_error_t* error);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_ZIP_STATUS_H_
