#include "core/cluster/cluster_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"

namespace keelson {
namespace {

constexpr Role kRoles[] = {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator};

absl::Status NoServers(const Task& self) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: ps: expected at least one address for ", self.ToString(),
                   " (TF_CONFIG cluster.ps or --ps_hosts), found none; a cluster without servers "
                   "lists its workers (TF_CONFIG cluster.worker as a list, or --worker_hosts)"));
}

absl::Status MissingServer(int expected, int found) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: ps: expected an address for every index from 0, found index ", found,
                   " but not index ", expected));
}

absl::Status SharedAddress(const Task& first, const Task& second, absl::string_view address) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: ", second.ToString(), ": expected an address of its own, found \"",
                   address, "\", which is also ", first.ToString(), "'s"));
}

absl::Status CheckServersComplete(const TaskAddresses& ps) {
  int expected = 0;
  for (const auto& [index, address] : ps) {
    if (index != expected) return MissingServer(expected, index);
    ++expected;
  }
  return absl::OkStatus();
}

absl::Status CheckAddresses(const ClusterSpec& spec) {
  std::map<std::string, Task> owners;
  for (Role role : kRoles) {
    for (const auto& [index, address] : spec.addresses(role)) {
      const Task task{role, index};
      RETURN_IF_ERROR(ParseAddress(absl::StrCat("cluster: ", task.ToString()), address).status());
      const auto [owner, inserted] = owners.emplace(address, task);
      if (!inserted) return SharedAddress(owner->second, task, address);
    }
  }
  return absl::OkStatus();
}

// "4 processes", "2 to 4 processes".
std::string WorldText(const ClusterSpec& spec) {
  const int most = *spec.world_size;
  if (spec.min_workers < most) return absl::StrCat(spec.min_workers, " to ", most, " processes");
  return most == 1 ? "1 process" : absl::StrCat(most, " processes");
}

// " known world: chief=0 ps=2 …"
std::string TasksText(const ClusterSpec& spec) {
  std::string text = spec.sparse ? " known world:" : " world:";
  if (spec.peers_register()) return absl::StrCat(text, " ", WorldText(spec));
  for (Role role : kRoles) {
    if (role == Role::kPs && spec.collective()) continue;
    absl::StrAppend(&text, " ", RoleName(role), "=", spec.addresses(role).size());
  }
  return text;
}

// ", 2 processes suffice"
std::string EnoughText(const ClusterSpec& spec) {
  const int listed = static_cast<int>(spec.chief.size() + spec.workers.size());
  if (!spec.derived_addresses || spec.min_workers == listed) return "";
  if (spec.min_workers == 1) return ", 1 process suffices";
  return absl::StrCat(", ", spec.min_workers, " processes suffice");
}

// " (RANK and WORLD_SIZE are set too, and ignored)"
std::string IgnoredText(const std::vector<std::string>& ignored) {
  if (ignored.empty()) return "";
  return absl::StrCat(" (", absl::StrJoin(ignored, ", "), ignored.size() == 1 ? " is" : " are",
                      " set too, and ignored)");
}

std::string SourceText(const ClusterSpec& spec) {
  const std::string ignored = IgnoredText(spec.ignored);
  return spec.source.empty() ? ignored : absl::StrCat(", from ", spec.source, ignored);
}

std::string LeaderText(const ClusterSpec& spec) {
  const Task leader{spec.chief_is_worker() ? Role::kWorker : Role::kChief, 0};
  const auto address = spec.ChiefAddress();
  return absl::StrCat(spec.source.empty() ? "" : ",", " led by ", leader.ToString(), " at ",
                      address.has_value() ? *address : "an address not yet known",
                      spec.derived_addresses ? " (the others' addresses follow)" : "");
}

}  // namespace

bool ClusterSpec::chief_is_worker() const {
  return distributed && !sparse && chief.empty() && self.role != Role::kChief;
}

bool ClusterSpec::IsChief() const {
  if (self.role == Role::kChief) return true;
  return self == Task{Role::kWorker, 0} && chief_is_worker();
}

bool ClusterSpec::collective() const {
  return distributed && !sparse && ps.empty() && self.role != Role::kPs;
}

std::vector<Task> ClusterSpec::ShardHosts() const {
  std::vector<Task> hosts;
  if (!collective()) return hosts;
  for (const auto& [index, address] : chief) hosts.push_back({Role::kChief, index});
  if (peers_register()) {
    for (int w = 0; static_cast<int>(hosts.size()) < min_workers; ++w) {
      hosts.push_back({Role::kWorker, w});
    }
    return hosts;
  }
  for (const auto& [index, address] : workers) hosts.push_back({Role::kWorker, index});
  const size_t numbered = min_workers > 0 ? min_workers : hosts.size();
  hosts.resize(std::min(hosts.size(), numbered));
  return hosts;
}

bool ClusterSpec::RunBy(Role program) const {
  if (program == self.role) return true;
  if (program == Role::kChief) return min_workers > 0 && IsChief();
  return program == Role::kWorker && self.role == Role::kChief && collective();
}

std::optional<std::string> ClusterSpec::ChiefAddress() const {
  const TaskAddresses& leaders = chief_is_worker() ? workers : chief;
  const auto leader = leaders.find(0);
  if (leader == leaders.end()) return std::nullopt;
  return leader->second;
}

std::optional<std::string> ClusterSpec::SelfAddress() const {
  const TaskAddresses& known = addresses(self.role);
  if (const auto own = known.find(self.index); own != known.end()) return own->second;
  if (known.size() == 1 && !peers_register()) return known.begin()->second;
  return std::nullopt;
}

std::string ClusterSpec::SelfHostName() const {
  const absl::StatusOr<Address> address = ParseAddress("", SelfAddress().value_or(""));
  return address.ok() && !address->is_literal() ? address->host : "";
}

std::string ClusterSpec::ListenAddress() const {
  Address listen{"0.0.0.0", peers_register() ? 0 : kDefaultPort};
  if (const auto own = SelfAddress(); own.has_value()) {
    const auto address = ParseAddress("", *own);
    if (address.ok()) listen.port = address->port;
    if (address.ok() && address->is_literal()) listen.host = address->host;
  }
  if (listen_port != 0) listen.port = listen_port;
  return listen.ToString();
}

const TaskAddresses& ClusterSpec::addresses(Role role) const {
  switch (role) {
    case Role::kChief:
      return chief;
    case Role::kPs:
      return ps;
    case Role::kWorker:
      return workers;
    case Role::kEvaluator:
      return evaluators;
  }
  return workers;
}

TaskAddresses& ClusterSpec::addresses(Role role) {
  return const_cast<TaskAddresses&>(std::as_const(*this).addresses(role));
}

std::string ClusterSpec::ToString() const {
  const std::string role = absl::StrCat("role=", self.ToString());
  if (!distributed) return absl::StrCat(role, " world: this process alone", IgnoredText(ignored));
  return absl::StrCat(role, TasksText(*this), collective() ? " without servers" : "",
                      EnoughText(*this), SourceText(*this), LeaderText(*this));
}

absl::Status ClusterSpec::Validate() const {
  RETURN_IF_ERROR(CheckAddresses(*this));
  const bool needs_servers = self.role == Role::kChief || self.role == Role::kWorker;
  if (!distributed || !needs_servers || collective()) return absl::OkStatus();
  if (ps.empty()) return NoServers(self);
  return CheckServersComplete(ps);
}

std::optional<Role> ParseRole(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "master") return Role::kChief;
  for (Role role : kRoles) {
    if (lower == RoleName(role)) return role;
  }
  return std::nullopt;
}

}  // namespace keelson
