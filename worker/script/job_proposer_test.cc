#include "worker/script/job_proposer.h"

#include <string>
#include <vector>

#include "core/base/file_system_testing.h"
#include "gtest/gtest.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

// Wants `wanted` bytes, and remembers the parts that come.
class AskingChief : public FaultyChiefService {
 public:
  explicit AskingChief(int64_t wanted) : wanted_(wanted) {}

  absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                          v1::ProposeJobResponse* response) override {
    requests.push_back(request);
    received += request.part();
    if (static_cast<int64_t>(received.size()) < wanted_) {
      response->set_next_offset(static_cast<int64_t>(received.size()));
    } else {
      *response->mutable_config() = request.config();
    }
    return absl::OkStatus();
  }

  std::vector<v1::ProposeJobRequest> requests;
  std::string received;

 private:
  const int64_t wanted_;
};

class JobProposerTest : public testing::Test {
 protected:
  absl::Status Propose(const std::string& initial_values, AskingChief* chief) {
    return JobProposer(
               config_, initial_values,
               [chief](const auto& request, auto* response) {
                 return chief->ProposeJob(request, response);
               },
               &files_)
        .Propose();
  }

  JobProposerTest() {
    config_.mutable_model()->set_name("line");
    config_.mutable_checkpoint()->set_model_dir("/here");
    content_.assign((2 << 20) + 5, 'x');
    std::unique_ptr<AppendFile> file = files_.OpenForAppend("/values", true).value();
    EXPECT_TRUE(file->Append(content_).ok());
    EXPECT_TRUE(file->Close().ok());
  }

  MemoryFileSystem files_;
  v1::TrainConfig config_;
  std::string content_;
};

TEST_F(JobProposerTest, SendsTheValuesThatTheChiefWants) {
  AskingChief chief(static_cast<int64_t>(content_.size()));
  ASSERT_TRUE(Propose("/values", &chief).ok());
  EXPECT_EQ(chief.received, content_);
  EXPECT_EQ(chief.requests.size(), 4u);  // the first has none
  for (const v1::ProposeJobRequest& request : chief.requests) {
    EXPECT_EQ(request.proposal_id(), chief.requests[0].proposal_id());
    EXPECT_EQ(request.initial_bytes(), static_cast<int64_t>(content_.size()));
    EXPECT_EQ(request.config().model().name(), "line");
    EXPECT_EQ(request.config().checkpoint().model_dir(), "");
  }
}

TEST_F(JobProposerTest, SendsNoneThatNobodyWants) {
  AskingChief chief(0);
  ASSERT_TRUE(Propose("/values", &chief).ok());
  ASSERT_TRUE(Propose("", &chief).ok());
  EXPECT_EQ(chief.received, "");
}

TEST_F(JobProposerTest, FailsWhereItHasNotWhatIsWanted) {
  AskingChief chief(1);
  EXPECT_EQ(Propose("", &chief).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Propose("/missing", &chief).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace keelson
