// A parameter server for tests that forwards to another one, to be overridden call by call.
#ifndef KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_TESTING_H_
#define KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_TESTING_H_

#include <utility>

#include "core/client/services/parameter_service.h"

namespace keelson {

// Forwards every call.
class ForwardingParameterService : public ParameterService {
 public:
  // `service` outlives this.
  explicit ForwardingParameterService(ParameterService* service) : service_(service) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    return service_->Initialize(request, response);
  }
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    return service_->Bulk(method, std::move(request));
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    return service_->WriteSnapshot(request, response);
  }
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override {
    return service_->StreamSnapshot(request, sink, response);
  }
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override {
    return service_->InitializeStreamed(first, next, response);
  }
  absl::Status Attend(const v1::AttendRequest& request, v1::ShardStatus* response) override {
    return service_->Attend(request, response);
  }
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override {
    return service_->CommitRound(request, response);
  }
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    return service_->GetStatus(request, response);
  }
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override {
    return service_->FindChief(request, response);
  }
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    return service_->Finish(request, response);
  }

 private:
  ParameterService* const service_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_TESTING_H_
