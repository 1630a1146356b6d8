// The parts of a chief that takes up a job of another one, for tests of how a job begins.
#ifndef KEELSON_CHIEF_LIFECYCLE_NEXT_CHIEF_TESTING_H_
#define KEELSON_CHIEF_LIFECYCLE_NEXT_CHIEF_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chief/lifecycle/cold_start.h"
#include "chief/lifecycle/job_start.h"
#include "chief/lifecycle/running_job_testing.h"
#include "chief/servers/server_supervisor.h"

namespace keelson {

// What has no "next" in its name is the predecessor's. The fake servers hold its job.
class NextChiefTest : public SavedJobTest {
 protected:
  void SetUp() override {
    SavedJobTest::SetUp();
    for (FakeParameterServer& fake : fakes_) {
      fake.EditStatus([this](v1::ShardStatus* shard) {
        shard->set_placement_fingerprint(model_.placement.Fingerprint());
      });
    }
    next_servers_.Describe({});
  }
  // The predecessor has ended, and the servers hold its newest job state.
  void EndPredecessor() {
    ASSERT_EQ(servers_.PersistState(coordinator_.persistence()->PersistedState()),
              absl::OkStatus());
    ASSERT_EQ(next_servers_.WaitUntilReachable(), absl::OkStatus());
  }
  // What the servers answer now.
  std::vector<v1::ShardStatus> Survey() {
    const auto shards = next_servers_.Survey();
    EXPECT_TRUE(shards.ok()) << shards.status();
    return shards.ok() ? *shards : std::vector<v1::ShardStatus>();
  }
  static Coordinator::Options NextOptions() {
    Coordinator::Options options;
    options.config_hash = kHash;
    return options;
  }
  static ServerGroup::Options NextGroupOptions() {
    ServerGroup::Options options;
    options.header.set_incarnation(1001);
    options.config_hash = FakeParameterServer::kConfigHash;
    return options;
  }
  ColdStart::Options ColdStartOptions() {
    ColdStart::Options options;
    options.config_hash = kHash;
    options.work = Work();
    options.model_dir = directory_.model_dir();
    return options;
  }
  ServerSupervisor::Job Supervised() {
    return {[this] { return next_.persistence()->PersistedState(); },
            [this] { return next_.roster()->MemberList(); },
            [this] { return next_.roster()->epoch(); },
            [](uint64_t) {},
            [this] { return next_snapshotter_.Snapshots(); },
            [](const absl::Status&) {}};
  }

  const ModelLocation model_ = {Placement(), {"a:1", "b:2"}};
  ServerGroup next_servers_{NextGroupOptions(),
                            {{"ps-0", "a:1", &fakes_[0]}, {"ps-1", "b:2", &fakes_[1]}},
                            &storage_,
                            &clock_,
                            &stop_};
  Coordinator next_{NextOptions(), &clock_};
  Leadership next_leadership_{nullptr, &stop_};
  Snapshotter next_snapshotter_{&directory_, &next_servers_, RetentionPolicy{5, 0}, &clock_};
  JobSnapshots next_snapshots_{&directory_, &next_snapshotter_, &next_servers_, &next_,
                               &next_leadership_};
  ServerSupervisor next_supervisor_{&next_servers_, Supervised(), &clock_, {}};
  ColdStart cold_start_{
      ColdStartOptions(), model_,  &next_, &next_servers_, &next_snapshotter_, &next_snapshots_,
      &next_leadership_,  &clock_, &stop_};
  JobStart start_{{kHash, Work()},
                  model_,
                  &cold_start_,
                  &next_,
                  &next_servers_,
                  &next_supervisor_,
                  &next_snapshotter_,
                  &next_snapshots_,
                  &next_leadership_,
                  &clock_,
                  &stop_};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_NEXT_CHIEF_TESTING_H_
