// The state of one parameter server, as the chief knows it from its other calls.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_STATE_H_
#define KEELSON_CHIEF_SERVERS_SERVER_STATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/cluster/table_totals.h"
#include "core/cluster/task.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// "ps-1"; of a shard that no parameter server holds "shard-1 of worker-0".
std::string ShardName(int shard, const std::optional<Task>& host);

struct ServerView {
  // In this order: no answer yet; holds its shard; answers without its shard; does not answer any
  // more; was told that the job is over.
  enum Kind { kWaiting, kAlive, kRestoring, kLost, kLeft };

  Task task = {Role::kPs, 0};  // with the shard's number, whatever hosts it
  // The chief or worker that hosts the shard; none: a parameter server of this number.
  std::optional<Task> host;
  std::string address;
  Kind kind = kWaiting;
  absl::Time since;  // wall time
  // From the newest answer.
  uint64_t incarnation = 0;
  int64_t shard_step = 0;
  int64_t value_bytes = 0;
  int64_t slot_bytes = 0;
  // Payload since the start of this process.
  int64_t pushed_bytes = 0;
  int64_t pulled_bytes = 0;
  int clients = 0;
  // Of each table of the placement; none while it has no shard.
  TablePartStatuses tables;
  // It was asked to stop, and waits for a snapshot (ShardStatus.leaving).
  bool leaving = false;
  // It was asked to stop, whether or not a snapshot has all that it holds.
  bool asked_to_stop = false;
  // The number of earlier processes of the task that this chief has seen.
  int restarts = 0;

  // As ShardName.
  std::string name() const { return ShardName(task.index, host); }

  // The server has answered.
  void NoteAnswer(const v1::ShardStatus& answer, absl::Time now);
  // Its shard has been made ready.
  void NoteReady(absl::Time now);
  // It has not answered.
  void NoteSilence(absl::Time now);
  // It was told that the job is over.
  void NoteEnd(absl::Time now);
};

// "waiting", "alive", "restoring", "lost", "left"
absl::string_view ServerKindName(ServerView::Kind kind);

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_STATE_H_
