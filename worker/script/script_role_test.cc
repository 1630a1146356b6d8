#include "worker/script/script_role.h"

#include <gmock/gmock.h>

#include <string>

#include "core/config/config_flags.h"
#include "core/script/script_peer_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

RoleContext ContextOfLayers() {
  RoleContext context;
  context.self = {Role::kWorker, 0};
  auto config = ResolveTrainConfig("", {});
  EXPECT_TRUE(config.ok()) << config.status();
  context.config = *std::move(config);
  return context;
}

TEST(AgentRoleTest, NeedsTheScriptsSocket) {
  StopSignal stop;
  const absl::Status status = RunAgentRole(ContextOfLayers(), {}, &stop);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--script_socket: expected the descriptor of a "));
}

std::string RefusalOf(const RoleContext& context, int64_t records, bool hold_values = false) {
  StopSignal stop;
  ScriptPeer script;
  AgentFlags flags;
  flags.script_socket = script.TakeAgentEnd();
  flags.records = records;
  flags.hold_values = hold_values;
  const absl::Status status = RunAgentRole(context, flags, &stop);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(AgentRoleTest, OfAModelOfLayersTheScriptCountsItsRecords) {
  EXPECT_EQ(RefusalOf(ContextOfLayers(), 0),
            "--records: expected how many the script has, of a model of layers, found none");
}

TEST(AgentRoleTest, RefusesWhatAScriptCannotDoOfAModelOfLayers) {
  RoleContext context = ContextOfLayers();
  context.config.mutable_data()->mutable_stream();
  EXPECT_EQ(RefusalOf(context, 8),
            "data.stream: expected records whose number is known where a script is a worker, found "
            "a stream");
  context = ContextOfLayers();
  context.config.mutable_optimizer()->set_clip_global_norm(0.5);
  EXPECT_EQ(RefusalOf(context, 8, /*hold_values=*/true),
            "optimizer.clip_global_norm: expected 0 (or no overlap) where a script is a worker, "
            "found 0.5");
  context.config.mutable_model()->add_tables()->set_name("users");
  EXPECT_EQ(RefusalOf(context, 8),
            "optimizer.clip_global_norm: expected 0 of a model with tables where a script is a "
            "worker, found 0.5");
  context = ContextOfLayers();
  context.config.mutable_transfer()->set_depth(2);
  EXPECT_EQ(RefusalOf(context, 8),
            "transfer.depth: expected 1 where a script is a worker, found 2");
}

}  // namespace
}  // namespace keelson
