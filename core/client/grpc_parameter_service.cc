#include "core/client/grpc_parameter_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/client/grpc_call.h"
#include "core/rpc/channel.h"
#include "core/rpc/raw_client.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using Stub = v1::ParameterService::StubInterface;

constexpr absl::Duration kControlTimeout = absl::Seconds(5);
constexpr absl::Duration kBulkTimeout = absl::Seconds(60);
constexpr absl::Duration kFileTimeout = absl::Minutes(30);

class GrpcParameterService : public ParameterService {
 public:
  GrpcParameterService(std::string peer, std::unique_ptr<Stub> control,
                       std::shared_ptr<grpc::Channel> bulk)
      : peer_(std::move(peer)), control_(std::move(control)), bulk_(std::move(bulk)) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    return CallUnary(control_.get(), &Stub::Initialize, request, response, kFileTimeout, peer_);
  }
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    // A queue of its own, so that threads do not wait for one another.
    RawCallQueue calls;
    calls.Start(bulk_, BulkMethodPath(method), std::move(request), kBulkTimeout, /*tag=*/0);
    std::optional<RawCallQueue::Completion> ended;
    while (!ended.has_value()) ended = calls.Next(kBulkTimeout);
    RETURN_IF_ERROR(FromGrpcStatus(ended->status, peer_));
    return std::move(ended->response);
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    return CallUnary(control_.get(), &Stub::WriteSnapshot, request, response, kFileTimeout, peer_);
  }
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    return CallUnary(control_.get(), &Stub::GetStatus, request, response, kControlTimeout, peer_);
  }
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override {
    return CallUnary(control_.get(), &Stub::FindChief, request, response, kControlTimeout, peer_);
  }
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    return CallUnary(control_.get(), &Stub::Finish, request, response, kControlTimeout, peer_);
  }

 private:
  const std::string peer_;
  const std::unique_ptr<Stub> control_;
  const std::shared_ptr<grpc::Channel> bulk_;
};

}  // namespace

std::unique_ptr<ParameterService> ConnectParameterService(
    const std::string& peer, const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return std::make_unique<GrpcParameterService>(
      absl::StrCat(peer, " at ", address),
      v1::ParameterService::NewStub(CreateChannel(address, credentials)),
      CreateChannel(address, credentials));
}

}  // namespace keelson
