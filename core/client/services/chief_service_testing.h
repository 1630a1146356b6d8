// A chief for tests, to be overridden call by call.
#ifndef KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_TESTING_H_
#define KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_TESTING_H_

#include "core/client/services/chief_service.h"

namespace keelson {

// Returns OK from every call, with empty responses.
class FakeChiefService : public ChiefService {
 public:
  absl::Status Register(const v1::RegisterRequest&, v1::RegisterResponse*) override {
    return absl::OkStatus();
  }
  absl::Status GetModel(const v1::GetModelRequest&, v1::GetModelResponse*) override {
    return absl::OkStatus();
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest&, v1::HeartbeatResponse*) override {
    return absl::OkStatus();
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest&, v1::AcquireWorkResponse*) override {
    return absl::OkStatus();
  }
  absl::Status EndTraining(const v1::EndTrainingRequest&, v1::EndTrainingResponse*) override {
    return absl::OkStatus();
  }
  absl::Status Leave(const v1::LeaveRequest&, v1::LeaveResponse*) override {
    return absl::OkStatus();
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest&,
                                     v1::AcknowledgeEvaluationResponse*) override {
    return absl::OkStatus();
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest&, v1::JobStatus*) override {
    return absl::OkStatus();
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_TESTING_H_
