#include "worker/script/job_proposer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr uint64_t kPartBytes = 1 << 20;

}  // namespace

JobProposer::JobProposer(const v1::TrainConfig& config, std::string initial_values, Call call,
                         FileSystem* file_system)
    : config_(WithoutDirectories(config)),
      initial_values_(std::move(initial_values)),
      id_(RandomId()),
      call_(std::move(call)),
      file_system_(file_system) {}

absl::Status JobProposer::Propose() {
  v1::ProposeJobRequest request;
  request.set_proposal_id(id_);
  *request.mutable_config() = config_;
  std::unique_ptr<RandomAccessFile> file;
  if (!initial_values_.empty()) {
    ASSIGN_OR_RETURN(file, file_system_->OpenForRead(initial_values_));
    request.set_initial_bytes(static_cast<int64_t>(file->size()));
  }
  while (true) {
    v1::ProposeJobResponse response;
    RETURN_IF_ERROR(call_(request, &response));
    if (response.has_config()) return absl::OkStatus();
    const auto offset = static_cast<uint64_t>(response.next_offset());
    if (file == nullptr || offset >= file->size()) {
      return absl::InternalError(absl::StrCat("ProposeJob: expected a job, found that the chief ",
                                              "wants values from ", offset, " on"));
    }
    request.set_offset(response.next_offset());
    std::string* const part = request.mutable_part();
    part->resize(std::min(kPartBytes, file->size() - offset));
    RETURN_IF_ERROR(file->Read(offset, part->size(), part->data()));
  }
}

}  // namespace keelson
