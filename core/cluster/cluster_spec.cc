#include "core/cluster/cluster_spec.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"

namespace keelson {
namespace {

constexpr Role kRoles[] = {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator};

absl::Status NoServers(const Task& self) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: ps: expected at least one address for ", self.ToString(),
                   " (TF_CONFIG cluster.ps or --ps_hosts), found none"));
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

std::optional<std::string> OwnOrSoleEntry(const TaskAddresses& addresses, int index) {
  const auto own = addresses.find(index);
  if (own != addresses.end()) return own->second;
  if (addresses.size() == 1) return addresses.begin()->second;
  return std::nullopt;
}

std::string LeaderText(const ClusterSpec& spec) {
  const Task leader{spec.chief_is_worker() ? Role::kWorker : Role::kChief, 0};
  const auto address = spec.ChiefAddress();
  return absl::StrCat(" led by ", leader.ToString(), " at ",
                      address.has_value() ? *address : "an address not yet known");
}

}  // namespace

bool ClusterSpec::chief_is_worker() const {
  return distributed && !sparse && chief.empty() && self.role != Role::kChief;
}

bool ClusterSpec::IsChief() const {
  if (self.role == Role::kChief) return true;
  return self == Task{Role::kWorker, 0} && chief_is_worker();
}

std::optional<std::string> ClusterSpec::ChiefAddress() const {
  const TaskAddresses& leaders = chief_is_worker() ? workers : chief;
  const auto leader = leaders.find(0);
  if (leader == leaders.end()) return std::nullopt;
  return leader->second;
}

std::optional<std::string> ClusterSpec::SelfAddress() const {
  return OwnOrSoleEntry(addresses(self.role), self.index);
}

std::string ClusterSpec::SelfHostName() const {
  const absl::StatusOr<Address> address = ParseAddress("", SelfAddress().value_or(""));
  return address.ok() && !address->is_literal() ? address->host : "";
}

std::string ClusterSpec::ListenAddress() const {
  Address listen{"0.0.0.0", kDefaultPort};
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
  std::string text = absl::StrCat("role=", self.ToString());
  if (!distributed) return absl::StrCat(text, " world: this process alone");
  absl::StrAppend(&text, sparse ? " known world:" : " world:");
  for (Role role : kRoles) absl::StrAppend(&text, " ", RoleName(role), "=", addresses(role).size());
  return absl::StrCat(text, LeaderText(*this));
}

absl::Status ClusterSpec::Validate() const {
  RETURN_IF_ERROR(CheckAddresses(*this));
  const bool needs_servers = self.role == Role::kChief || self.role == Role::kWorker;
  if (!distributed || !needs_servers) return absl::OkStatus();
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
