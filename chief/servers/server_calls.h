// How the chief calls its parameter servers: their services, what each request carries, and calls
// of all servers side by side.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_
#define KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/servers/server_contacts.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// Thread-safe. A server is known by its shard's number.
class ServerCalls {
 public:
  struct Server {
    std::string name;     // "ps-0"
    std::string address;  // for messages
    ParameterControl* service;
  };

  // `servers[s]` will hold shard s; their services outlive this. `header`: the chief's. None of the
  // servers has answered yet, at `now`.
  ServerCalls(v1::RequestHeader header, std::vector<Server> servers, absl::Time now);

  size_t size() const { return servers_.size(); }
  const std::string& name(size_t s) const { return servers_[s].name; }
  ParameterControl* service(size_t s) const { return servers_[s].service; }

  // The term that this chief's calls carry.
  uint64_t term() const { return term_; }
  void SetTerm(uint64_t term) { term_ = term; }
  // The chief's header, with its term.
  v1::RequestHeader Header() const;

  // Calls all servers side by side; returns the first error, after the server's name; ABORTED, that
  // another chief is there, before all other errors.
  absl::Status ForEach(absl::FunctionRef<absl::Status(size_t)> call) const;
  // The status with the server's name before its message.
  absl::Status Named(size_t s, const absl::Status& status) const;

  // What the newest calls have said of each server.
  ServerContacts& contacts() { return contacts_; }
  const ServerContacts& contacts() const { return contacts_; }

 private:
  const v1::RequestHeader header_;
  const std::vector<Server> servers_;
  ServerContacts contacts_;
  std::atomic<uint64_t> term_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_CALLS_H_
