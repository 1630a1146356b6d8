#include "chief/servers/server_state.h"

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

void Enter(ServerView* state, ServerView::Kind kind, absl::Time now) {
  if (state->kind == kind) return;
  state->kind = kind;
  state->since = now;
}

}  // namespace

std::string ShardName(int shard, const std::optional<Task>& host) {
  if (!host.has_value()) return Task{Role::kPs, shard}.ToString();
  return absl::StrCat("shard-", shard, " of ", host->ToString());
}

void ServerView::NoteAnswer(const v1::ShardStatus& answer, absl::Time now) {
  if (incarnation != 0 && answer.incarnation() != incarnation) ++restarts;
  incarnation = answer.incarnation();
  shard_step = answer.shard_step();
  value_bytes = answer.value_bytes();
  slot_bytes = answer.slot_bytes();
  pushed_bytes = answer.pushed_bytes();
  pulled_bytes = answer.pulled_bytes();
  clients = answer.active_clients();
  tables = answer.tables();
  leaving = answer.leaving();
  asked_to_stop = answer.asked_to_stop();
  Enter(this, answer.state() == v1::ShardStatus::READY ? kAlive : kRestoring, now);
}

void ServerView::NoteSilence(absl::Time now) {
  leaving = asked_to_stop = false;
  if (kind == kAlive || kind == kRestoring) Enter(this, kLost, now);
}

void ServerView::NoteReady(absl::Time now) { Enter(this, kAlive, now); }

void ServerView::NoteEnd(absl::Time now) { Enter(this, kLeft, now); }

absl::string_view ServerKindName(ServerView::Kind kind) {
  switch (kind) {
    case ServerView::kWaiting:
      return "waiting";
    case ServerView::kAlive:
      return "alive";
    case ServerView::kRestoring:
      return "restoring";
    case ServerView::kLost:
      return "lost";
    case ServerView::kLeft:
      return "left";
  }
  return "";
}

}  // namespace keelson
