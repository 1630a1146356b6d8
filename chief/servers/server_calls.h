// How the chief calls its parameter servers: their services, what each request carries, and calls
// of all servers side by side.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_
#define KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/servers/server_contacts.h"
#include "core/client/services/parameter_control.h"
#include "core/cluster/task.h"

namespace keelson {

// Thread-safe. A server is known by its shard's number.
class ServerCalls {
 public:
  struct Server {
    std::string name;     // "ps-0", "shard-1 of worker-0"
    std::string address;  // for messages; where it is at first (AddressOf)
    ParameterControl* service;
    // The task that hosts the shard, if it is no parameter server's.
    std::optional<Task> host = std::nullopt;
    // Further places that may serve the shard, or hold its replica, in the order in which they are
    // preferred; the first place is this one, its home. They have none themselves.
    std::vector<Server> others = {};
  };

  // `servers[s]` will hold shard s; their services outlive this. `header`: the chief's. None of the
  // servers has answered yet, at `now`.
  ServerCalls(v1::RequestHeader header, std::vector<Server> servers, absl::Time now);

  size_t size() const { return servers_.size(); }
  // Where the shard is served at present.
  const Server& at(size_t s) const;
  const std::string& name(size_t s) const { return at(s).name; }
  ParameterControl* service(size_t s) const { return at(s).service; }
  // Where it is reached now, which its service knows too; empty: nobody knows.
  std::string address(size_t s) const { return AddressOf(at(s)); }
  std::string AddressOf(const Server& server) const {
    return contacts_.AddressOf({server.name, server.address, server.host});
  }
  // How many places may serve it; place 0 is its home.
  size_t places(size_t s) const { return 1 + servers_[s].others.size(); }
  const Server& place(size_t s, size_t number) const;
  // The number of the place that serves it.
  size_t serving(size_t s) const { return serving_[s]; }
  bool at_home(size_t s) const { return serving(s) == 0; }
  // From now on this place serves the shard.
  void Serve(size_t s, size_t number) { serving_[s] = number; }

  // The term that this chief's calls carry.
  uint64_t term() const { return term_; }
  void SetTerm(uint64_t term) { term_ = term; }
  // The chief's header, with its term.
  v1::RequestHeader Header() const;

  // Calls all servers side by side, with threads of its own; returns the first error, after the
  // server's name.
  absl::Status ForEach(absl::FunctionRef<absl::Status(size_t)> call) const;
  // The first error; ABORTED, that another chief is there, before all other errors.
  static absl::Status FirstError(absl::Span<const absl::Status> statuses);
  // The status with the server's name before its message.
  absl::Status Named(size_t s, const absl::Status& status) const;

  // What the newest calls have said of each server.
  ServerContacts& contacts() { return contacts_; }
  const ServerContacts& contacts() const { return contacts_; }

 private:
  const v1::RequestHeader header_;
  const std::vector<Server> servers_;
  std::vector<std::atomic<size_t>> serving_;
  ServerContacts contacts_;
  std::atomic<uint64_t> term_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_
