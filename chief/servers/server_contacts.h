// What the chief's newest calls have said of each parameter server.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_CONTACTS_H_
#define KEELSON_CHIEF_SERVERS_SERVER_CONTACTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/servers/server_state.h"
#include "core/base/mutex.h"
#include "core/cluster/task.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe; makes no calls, so that nothing here waits. A server is known by its shard's number.
class ServerContacts {
 public:
  struct Server {
    std::string name;                         // "ps-0"
    std::string address;                      // for messages; empty: it is not known
    std::optional<Task> host = std::nullopt;  // ServerCalls::Server
  };

  // None of the servers has answered yet, at `now`.
  ServerContacts(std::vector<Server> servers, absl::Time now);

  // ---- Notes of calls.

  // The server has admitted this chief and answered the heartbeat `request`. `has_job`: it holds
  // its shard and a job state.
  void NoteAnswer(size_t s, const v1::ChiefHeartbeatRequest& request, const v1::ShardStatus& status,
                  bool has_job, absl::Time now);
  // It has not answered a heartbeat.
  void NoteSilence(size_t s, absl::Time now);
  // It has not answered another call.
  void NoteMissing(size_t s);
  // Its shard is about to be made: pushes that were sent before are not in it.
  void NoteMaking(size_t s);
  // A cut of its shard is about to be prepared: if it was asked to stop, which it may not have told
  // yet, it applies nothing after that, and what it holds of a round goes with it.
  void NoteCut(size_t s);
  // Its shard, since it was made for the time number `makings`, lacks no push of a round under way:
  // it has committed a round, or nobody else has any either.
  void NoteWhole(size_t s, uint64_t makings);
  // Its shard was made ready in the store with this id.
  void NoteReady(size_t s, uint64_t store_id, absl::Time now);
  // Its shard could not be made ready.
  void NoteBroken(size_t s);
  // Servers whose shard could not be made ready are tried again.
  void ForgiveBroken();
  // It waits for another chief's silence. False: that is known.
  bool NoteHeld(size_t s);
  // The shard in the store with this id is the job's.
  void NoteKept(size_t s, uint64_t store_id);
  // Its shard is served elsewhere from now on, by a process whose status is this one.
  void NoteMoved(size_t s, const Server& to, const v1::ShardStatus& status, absl::Time now);
  // The process of this task is reached there from now on; empty: nobody knows where.
  void NoteAddress(const Task& host, const std::string& address);
  // It was told that the job is over. It is ending, and need not know what becomes of members.
  void NoteEnd(size_t s, absl::Time now);

  // ---- Queries.

  // Whether the server has answered its newest call.
  bool Answers(size_t s) const;
  // Whether that answer was one of a server with the job's shard, and its address is the same.
  bool Serves(size_t s) const;
  // The id of the store of the shard that is the job's; 0: none is known.
  uint64_t store_id(size_t s) const;
  // How often its shard was made.
  uint64_t makings(size_t s) const;
  // Whether it, or its successor, may lack pushes of the round under way that it has acknowledged:
  // its shard was made or cut since it was known to lack none (NoteWhole), or will be made, or it
  // is leaving, or may be another process.
  bool MayLackPushes(size_t s) const;
  // Whether it has admitted this chief.
  bool Met(size_t s) const;
  bool MetAny() const;
  // Whether its newest answer was that of one that knows this epoch's members.
  bool KnowsMembers(size_t s, uint64_t epoch) const;
  // Whether it holds a shard that this chief has neither kept nor made.
  bool HoldsForeignShard(size_t s, const v1::ShardStatus& found) const;
  // The newest epoch whose members, or those of a newer one, every server knows.
  uint64_t known_epoch() const;
  // The newest version of persisted job state that all answering servers have; 0: none.
  uint64_t stored_version() const;
  // Where the process is that hosts `server`: as was noted last, else as `server` says.
  std::string AddressOf(const Server& server) const;
  // "ps-1 at host:port", "shard-1 of worker-1 (it has not registered)" of each server that does not
  // answer, or could not be made ready.
  std::vector<std::string> Missing() const;
  // "ps-0" if it answers and has the job as a predecessor left it; empty: none has.
  std::string HolderOfJob() const;
  std::vector<ServerView> States() const;

 private:
  struct Contact {
    ServerView state;
    bool answers = false;
    bool broken = false;  // its shard could not be made ready
    uint64_t member_epoch = 0;
    bool held_by_other = false;
    uint64_t stored = 0;
    bool met = false;
    bool has_job = false;
    // The id of the store of the shard that is the job's; 0: there is none.
    uint64_t store_id = 0;
    // Another store may be there: so its newest answer says, or it is at another address since.
    bool may_be_foreign = false;
    // It was leaving, and its shard has not been made since.
    bool leaves = false;
    uint64_t makings = 0;
    // How many of them it had when it last lacked nothing.
    uint64_t whole = 0;
    bool cut = false;  // since then
  };

  static bool IsForeign(const Contact& contact, const v1::ShardStatus& found);
  std::string CurrentAddress(const Server& server) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  std::map<Task, std::string> addresses_ ABSL_GUARDED_BY(mu_);  // that were noted, by host
  std::vector<Server> servers_ ABSL_GUARDED_BY(mu_);
  std::vector<Contact> contacts_ ABSL_GUARDED_BY(mu_);  // by shard
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_CONTACTS_H_
