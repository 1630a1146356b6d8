#include "core/client/grpc_parameter_service.h"

#include "absl/strings/str_cat.h"
#include "core/client/grpc_call.h"
#include "core/rpc/channel.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using Stub = v1::ParameterService::StubInterface;

constexpr absl::Duration kControlTimeout = absl::Seconds(5);
constexpr absl::Duration kBulkTimeout = absl::Seconds(60);
constexpr absl::Duration kFileTimeout = absl::Minutes(30);

class GrpcParameterService : public ParameterService {
 public:
  GrpcParameterService(std::string peer, std::unique_ptr<Stub> control, std::unique_ptr<Stub> bulk)
      : peer_(std::move(peer)), control_(std::move(control)), bulk_(std::move(bulk)) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    return CallUnary(control_.get(), &Stub::Initialize, request, response, kFileTimeout, peer_);
  }
  absl::Status Pull(const v1::PullRequest& request, v1::PullResponse* response) override {
    return CallUnary(bulk_.get(), &Stub::Pull, request, response, kBulkTimeout, peer_);
  }
  absl::Status Push(const v1::PushRequest& request, v1::PushResponse* response) override {
    return CallUnary(bulk_.get(), &Stub::Push, request, response, kBulkTimeout, peer_);
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
  const std::unique_ptr<Stub> bulk_;
};

}  // namespace

std::unique_ptr<ParameterService> ConnectParameterService(
    const std::string& peer, const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return std::make_unique<GrpcParameterService>(
      absl::StrCat(peer, " at ", address),
      v1::ParameterService::NewStub(CreateChannel(address, credentials)),
      v1::ParameterService::NewStub(CreateChannel(address, credentials)));
}

}  // namespace keelson
