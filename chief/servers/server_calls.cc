#include "chief/servers/server_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"

namespace keelson {
namespace {

std::vector<ServerContacts::Server> NamesOf(const std::vector<ServerCalls::Server>& servers) {
  std::vector<ServerContacts::Server> names;
  for (const ServerCalls::Server& server : servers) {
    names.push_back({server.name, server.address, server.host});
  }
  return names;
}

}  // namespace

ServerCalls::ServerCalls(v1::RequestHeader header, std::vector<Server> servers, absl::Time now)
    : header_(std::move(header)),
      servers_(std::move(servers)),
      serving_(servers_.size()),
      contacts_(NamesOf(servers_), now),
      term_(header_.chief_term()) {}

const ServerCalls::Server& ServerCalls::at(size_t s) const { return place(s, serving(s)); }

const ServerCalls::Server& ServerCalls::place(size_t s, size_t number) const {
  return number == 0 ? servers_[s] : servers_[s].others[number - 1];
}

absl::Status ServerCalls::Named(size_t s, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name(s), ": ", status.message()));
}

absl::Status ServerCalls::ForEach(absl::FunctionRef<absl::Status(size_t)> call) const {
  std::vector<absl::Status> statuses(servers_.size());
  ThreadPool pool(size() - 1);
  pool.RunAll(size(), [&](size_t s) { statuses[s] = Named(s, call(s)); });
  return FirstError(statuses);
}

absl::Status ServerCalls::FirstError(absl::Span<const absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (status.code() == absl::StatusCode::kAborted) return status;
  }
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

v1::RequestHeader ServerCalls::Header() const {
  v1::RequestHeader header = header_;
  header.set_chief_term(term_);
  return header;
}

}  // namespace keelson
