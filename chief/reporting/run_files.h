// The files that the chief writes into the model directory at the start of training, for the
// dashboard and for later readers.
#ifndef KEELSON_CHIEF_REPORTING_RUN_FILES_H_
#define KEELSON_CHIEF_REPORTING_RUN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/servers/server_state.h"
#include "core/base/file_system.h"
#include "core/cluster/placement.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// One line of JSON:
//   balance    the largest shard over the mean, of the servers or of the tasks that train: the
//   greater shards     list of {task, bytes}, by shard; host: the task that it begins at, where
//   that is no
//              parameter server; row_partitions: of tables, where the model has some
//   variables  list of {name, shape, bytes, partitions}, by name; partitions is a list of {shard,
//              row_begin, row_end, bytes}
// `servers[s]` holds shard s.
std::string PlacementJson(const Placement& placement, const std::vector<ServerView>& servers);

// Replaces MODEL_DIR/placement.json and MODEL_DIR/train_config.textproto, which has `config` as
// it is. The first error; the other file is written all the same.
absl::Status WriteRunFiles(const v1::TrainConfig& config, const Placement& placement,
                           const std::vector<ServerView>& servers, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_RUN_FILES_H_
