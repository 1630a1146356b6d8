#include "core/tensor_files/zip_status.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace keelson {
namespace {

absl::Status StatusOf(int zip_code, int system_code = 0) {
  zip_error_t error;
  zip_error_init(&error);
  zip_error_set(&error, zip_code, system_code);
  const absl::Status status = ZipStatus("model.npz", &error);
  zip_error_fini(&error);
  return status;
}

TEST(ZipStatusTest, TellsDamageFromWhatIsNotSupported) {
  for (const int code :
       {ZIP_ER_NOZIP, ZIP_ER_INCONS, ZIP_ER_CRC, ZIP_ER_EOF, ZIP_ER_ZLIB, ZIP_ER_COMPRESSED_DATA}) {
    EXPECT_EQ(StatusOf(code).code(), absl::StatusCode::kDataLoss) << code;
  }
  for (const int code :
       {ZIP_ER_COMPNOTSUPP, ZIP_ER_ENCRNOTSUPP, ZIP_ER_NOPASSWD, ZIP_ER_MULTIDISK}) {
    EXPECT_EQ(StatusOf(code).code(), absl::StatusCode::kUnimplemented) << code;
  }
  EXPECT_EQ(StatusOf(ZIP_ER_NOENT), absl::NotFoundError("model.npz: No such file"));
}

TEST(ZipStatusTest, ErrorsOfTheSystemAreTransient) {
  EXPECT_EQ(StatusOf(ZIP_ER_WRITE, ENOSPC).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(StatusOf(ZIP_ER_WRITE, EDQUOT).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(StatusOf(ZIP_ER_WRITE, EIO).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatusOf(ZIP_ER_MEMORY).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace keelson
