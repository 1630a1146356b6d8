#include "core/rpc/grpc_status.h"

#include <string>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(GrpcStatusTest, CodesAndTextsCrossBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    const absl::Status back = FromGrpcStatus(ToGrpcStatus(status), "ps-0");
    // A peer that cancels a call is going away.
    const bool cancelled = absl::IsCancelled(status);
    EXPECT_EQ(back.code(), cancelled ? absl::StatusCode::kUnavailable : status.code());
    EXPECT_NE(std::string(back.message()).find("text"), std::string::npos);
  }
  EXPECT_TRUE(FromGrpcStatus(ToGrpcStatus(absl::OkStatus()), "ps-0").ok());
}

TEST(GrpcStatusTest, TransportErrorsNameThePeer) {
  const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "connection reset");
  EXPECT_EQ(FromGrpcStatus(lost, "ps-1 at host:1").message(), "ps-1 at host:1: connection reset");
  const grpc::Status refused(grpc::StatusCode::INVALID_ARGUMENT, "bad block");
  EXPECT_EQ(FromGrpcStatus(refused, "ps-1 at host:1").message(), "bad block");
}

TEST(GrpcStatusTest, CallsThatAServerCancelsMayBeRepeated) {
  const absl::Status status = FromGrpcStatus(grpc::Status::CANCELLED, "ps-1 at host:1");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(status.message()).find("ps-1 at host:1"), std::string::npos);
}

}  // namespace
}  // namespace keelson
