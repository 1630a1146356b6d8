#include "core/config/placement_checks.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace keelson {
namespace {

v1::PlacementConfig PlacementGroups(const std::string& text) {
  v1::PlacementConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// With the variables "dense/kernel" and "dense/bias", and the table "users".
absl::Status CheckGroups(const std::string& text) {
  ModelVariables model;
  model.variables = {{"dense/kernel", Shape({3}), {}}, {"dense/bias", Shape({3}), {}}};
  model.tables = {{"users", 8, {}}};
  return CheckPlacement(PlacementGroups(text), model);
}

TEST(CheckPlacementTest, VariablesMayBeAnywhereAndTablesOnServers) {
  for (const char* good : {
           "",
           "groups { variables: '*' on: PS }",
           "groups { variables: 'users' on: PS } groups { variables: '*' on: WORKERS }",
           "groups { variables: 'dense/*' on: WORKERS }",
           "groups { variables: '*/bias' on: PS } groups { variables: 'd*' on: WORKERS }",
       }) {
    EXPECT_EQ(CheckGroups(good), absl::OkStatus()) << good;
  }
}

TEST(CheckPlacementTest, WhatAGroupLacksIsSaid) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"groups { on: PS }",
       "placement.groups[0].variables: expected a pattern for names, found none"},
      {"groups { variables: '*' }", "placement.groups[0].on: expected PS or WORKERS, found none"},
      {"groups { variables: 'user' on: PS }",
       "placement.groups[0].variables: expected a pattern that matches a variable or table, found "
       "\"user\""},
      {"groups { variables: '*' on: PS } groups { variables: 'users' on: PS }",
       "placement.groups[1].variables: expected a pattern that matches a variable or table of no "
       "group before it, found \"users\""},
      {"groups { variables: 'dense/*' on: PS } groups { variables: '*' on: WORKERS }",
       "placement.groups[1].on: expected PS for the table \"users\", which a group before this one "
       "may say, found WORKERS"},
  };
  for (const auto& [config, error] : kErrors) {
    EXPECT_EQ(CheckGroups(config), absl::InvalidArgumentError(error)) << config;
  }
  v1::PlacementConfig unknown = PlacementGroups("groups { variables: '*' }");
  unknown.mutable_groups(0)->set_on(static_cast<v1::PlacementConfig::Group::Place>(7));
  EXPECT_EQ(CheckPlacement(unknown, {}),
            absl::InvalidArgumentError("placement.groups[0].on: expected PS or WORKERS, found 7"));
}

ClusterSpec ClusterToPlaceIn(int servers, int workers) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 0};
  cluster.chief[0] = "chief:1";
  for (int i = 0; i < servers; ++i) cluster.ps[i] = "ps:1";
  for (int i = 0; i < workers; ++i) cluster.workers[i] = "worker:1";
  return cluster;
}

TEST(CheckPlacementFitsTest, AClusterHasWhatTheGroupsName) {
  const v1::PlacementConfig servers = PlacementGroups("groups { variables: '*' on: PS }");
  const v1::PlacementConfig workers = PlacementGroups("groups { variables: '*' on: WORKERS }");
  EXPECT_EQ(CheckPlacementFits(servers, ClusterToPlaceIn(1, 1)), absl::OkStatus());
  EXPECT_EQ(CheckPlacementFits(workers, ClusterToPlaceIn(1, 1)), absl::OkStatus());
  EXPECT_EQ(CheckPlacementFits(workers, ClusterToPlaceIn(0, 1)), absl::OkStatus());
  for (const auto& alone : {servers, workers}) {
    EXPECT_EQ(CheckPlacementFits(alone, ClusterSpec()), absl::OkStatus());
  }
  EXPECT_EQ(CheckPlacementFits(servers, ClusterToPlaceIn(0, 1)),
            absl::InvalidArgumentError("placement.groups[0].on: expected WORKERS in a cluster "
                                       "without parameter servers (TF_CONFIG cluster.ps or "
                                       "--ps_hosts), found PS"));
  EXPECT_EQ(
      CheckPlacementFits(workers, ClusterToPlaceIn(1, 0)),
      absl::InvalidArgumentError("placement.groups[0].on: expected PS in a cluster that lists "
                                 "no workers (TF_CONFIG cluster.worker or --worker_hosts), "
                                 "found WORKERS"));
  ClusterSpec sparse = ClusterToPlaceIn(1, 1);
  sparse.sparse = true;
  EXPECT_EQ(CheckPlacementFits(workers, sparse),
            absl::InvalidArgumentError("placement.groups[0].on: expected PS in a cluster that does "
                                       "not list its workers (enableDynamicWorker), found "
                                       "WORKERS"));
}

// A server may know only itself and its like.
TEST(CheckPlacementFitsTest, OnlyTheChiefAndWorkersKnowTheWorkers) {
  ClusterSpec cluster = ClusterToPlaceIn(1, 0);
  cluster.self = {Role::kPs, 0};
  EXPECT_EQ(CheckPlacementFits(PlacementGroups("groups { variables: '*' on: WORKERS }"), cluster),
            absl::OkStatus());
}

}  // namespace
}  // namespace keelson
