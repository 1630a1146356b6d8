// A group of two fake servers for tests of the chief's calls.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_GROUP_TESTING_H_
#define KEELSON_CHIEF_SERVERS_SERVER_GROUP_TESTING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "chief/servers/fake_parameter_server.h"
#include "chief/servers/server_group.h"
#include "chief/servers/shard_storage.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

class ServerGroupTest : public testing::Test {
 protected:
  static constexpr uint64_t kCut = 5;

  static ServerGroup::Options MakeOptions() {
    ServerGroup::Options options;
    options.header.set_incarnation(42);
    options.config_hash = FakeParameterServer::kConfigHash;
    options.chief_address = "chief:2222";
    return options;
  }
  absl::Status Store(uint64_t version) {
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(version);
    return group_.PersistState(persisted);
  }
  ServerGroupTest() {
    v1::InitializeShardRequest shards;
    shards.set_seed(5);
    group_.Describe(shards);
  }

  ManualClock clock_;
  StopSignal stop_;
  FakeParameterServer servers_[2];
  ServerStorage storage_;
  ServerGroup group_{MakeOptions(),
                     {{"ps-0", "a:1", &servers_[0]}, {"ps-1", "b:2", &servers_[1]}},
                     &storage_,
                     &clock_,
                     &stop_};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_GROUP_TESTING_H_
