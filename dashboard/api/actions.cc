#include "dashboard/api/actions.h"

#include "core/base/status_macros.h"
#include "core/cluster/consistency.h"

namespace keelson {
namespace {

class ActionsOfChief : public JobActions {
 public:
  explicit ActionsOfChief(ChiefService* chief) : chief_(chief) {}

  absl::Status EndTraining(absl::string_view reason) override {
    v1::EndTrainingRequest request;
    request.set_reason(std::string(reason));
    v1::EndTrainingResponse response;
    return chief_->EndTraining(request, &response);
  }

  absl::Status SetMode(absl::string_view mode) override {
    ASSIGN_OR_RETURN(const ConsistencyMode parsed, ConsistencyMode::Parse(mode));
    v1::SetModeRequest request;
    *request.mutable_mode() = parsed.ToProto();
    v1::SetModeResponse response;
    return chief_->SetMode(request, &response);
  }

 private:
  ChiefService* const chief_;
};

}  // namespace

std::unique_ptr<JobActions> ChiefActions(ChiefService* chief) {
  return std::make_unique<ActionsOfChief>(chief);
}

}  // namespace keelson
