#include "chief/servers/server_contacts.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"

namespace keelson {

ServerContacts::ServerContacts(std::vector<Server> servers, absl::Time now)
    : servers_(std::move(servers)) {
  MutexLock lock(&mu_);
  for (const Server& server : servers_) {
    Contact contact;
    contact.state.task = {Role::kPs, static_cast<int>(contacts_.size())};
    contact.state.host = server.host;
    contact.state.address = server.address;
    contact.state.since = now;
    contacts_.push_back(std::move(contact));
  }
}

void ServerContacts::NoteAnswer(size_t s, const v1::ChiefHeartbeatRequest& request,
                                const v1::ShardStatus& status, bool has_job, absl::Time now) {
  MutexLock lock(&mu_);
  Contact& contact = contacts_[s];
  contact.state.NoteAnswer(status, now);
  contact.answers = true;
  contact.met = true;
  contact.has_job = has_job;
  contact.leaves = contact.leaves || status.leaving();
  contact.member_epoch = status.member_epoch();
  if (!request.job_state().empty()) {
    contact.stored = request.job_state_version();
  } else if (status.state() == v1::ShardStatus::EMPTY) {
    contact.stored = 0;
  }
  if (status.state() == v1::ShardStatus::READY) contact.broken = false;
  contact.may_be_foreign = contact.store_id != 0 && IsForeign(contact, status);
}

void ServerContacts::NoteSilence(size_t s, absl::Time now) {
  MutexLock lock(&mu_);
  contacts_[s].state.NoteSilence(now);
  contacts_[s].answers = false;
}

void ServerContacts::NoteMissing(size_t s) {
  MutexLock lock(&mu_);
  contacts_[s].answers = false;
}

void ServerContacts::NoteMaking(size_t s) {
  MutexLock lock(&mu_);
  ++contacts_[s].makings;
  contacts_[s].leaves = false;
}

void ServerContacts::NoteCut(size_t s) {
  MutexLock lock(&mu_);
  contacts_[s].cut = true;
}

void ServerContacts::NoteWhole(size_t s, uint64_t makings) {
  MutexLock lock(&mu_);
  contacts_[s].whole = std::max(contacts_[s].whole, makings);
  contacts_[s].cut = false;
}

void ServerContacts::NoteReady(size_t s, uint64_t store_id, absl::Time now) {
  MutexLock lock(&mu_);
  contacts_[s].state.NoteReady(now);
  contacts_[s].broken = false;
  contacts_[s].store_id = store_id;
  contacts_[s].may_be_foreign = false;
}

void ServerContacts::NoteBroken(size_t s) {
  MutexLock lock(&mu_);
  contacts_[s].broken = true;
}

void ServerContacts::ForgiveBroken() {
  MutexLock lock(&mu_);
  for (Contact& contact : contacts_) contact.broken = false;
}

bool ServerContacts::NoteHeld(size_t s) {
  MutexLock lock(&mu_);
  return !std::exchange(contacts_[s].held_by_other, true);
}

void ServerContacts::NoteKept(size_t s, uint64_t store_id) {
  MutexLock lock(&mu_);
  contacts_[s].store_id = store_id;
  contacts_[s].may_be_foreign = false;
}

void ServerContacts::NoteMoved(size_t s, const Server& to, const v1::ShardStatus& status,
                               absl::Time now) {
  MutexLock lock(&mu_);
  servers_[s] = to;
  servers_[s].address = CurrentAddress(to);
  Contact& contact = contacts_[s];
  contact.state.host = to.host;
  contact.state.address = servers_[s].address;
  contact.state.incarnation = 0;
  contact.state.NoteAnswer(status, now);
  contact.answers = true;
  contact.broken = false;
  contact.member_epoch = 0;
  contact.stored = 0;
  contact.store_id = status.store_id();
  contact.may_be_foreign = false;
  contact.leaves = false;
  ++contact.makings;
}

void ServerContacts::NoteAddress(const Task& host, const std::string& address) {
  MutexLock lock(&mu_);
  addresses_[host] = address;
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].host != host || servers_[s].address == address) continue;
    servers_[s].address = address;
    contacts_[s].may_be_foreign = true;
    contacts_[s].state.address = address;
  }
}

std::string ServerContacts::CurrentAddress(const Server& server) const {
  if (!server.host.has_value()) return server.address;
  const auto noted = addresses_.find(*server.host);
  return noted == addresses_.end() ? server.address : noted->second;
}

std::string ServerContacts::AddressOf(const Server& server) const {
  MutexLock lock(&mu_);
  return CurrentAddress(server);
}

void ServerContacts::NoteEnd(size_t s, absl::Time now) {
  MutexLock lock(&mu_);
  contacts_[s].state.NoteEnd(now);
  contacts_[s].answers = false;
}

bool ServerContacts::Answers(size_t s) const {
  MutexLock lock(&mu_);
  return contacts_[s].answers;
}

bool ServerContacts::Serves(size_t s) const {
  MutexLock lock(&mu_);
  const Contact& contact = contacts_[s];
  return contact.answers && contact.state.kind == ServerView::kAlive && !contact.may_be_foreign;
}

uint64_t ServerContacts::store_id(size_t s) const {
  MutexLock lock(&mu_);
  return contacts_[s].store_id;
}

uint64_t ServerContacts::makings(size_t s) const {
  MutexLock lock(&mu_);
  return contacts_[s].makings;
}

bool ServerContacts::MayLackPushes(size_t s) const {
  MutexLock lock(&mu_);
  const Contact& contact = contacts_[s];
  return contact.makings > contact.whole || contact.cut || contact.leaves ||
         contact.may_be_foreign || contact.state.kind == ServerView::kRestoring ||
         contact.state.kind == ServerView::kLost;
}

bool ServerContacts::Met(size_t s) const {
  MutexLock lock(&mu_);
  return contacts_[s].met;
}

bool ServerContacts::MetAny() const {
  MutexLock lock(&mu_);
  return std::any_of(contacts_.begin(), contacts_.end(),
                     [](const Contact& contact) { return contact.met; });
}

bool ServerContacts::KnowsMembers(size_t s, uint64_t epoch) const {
  MutexLock lock(&mu_);
  return contacts_[s].member_epoch == epoch;
}

bool ServerContacts::HoldsForeignShard(size_t s, const v1::ShardStatus& found) const {
  MutexLock lock(&mu_);
  return IsForeign(contacts_[s], found);
}

bool ServerContacts::IsForeign(const Contact& contact, const v1::ShardStatus& found) {
  return found.state() == v1::ShardStatus::READY && found.store_id() != contact.store_id;
}

uint64_t ServerContacts::known_epoch() const {
  MutexLock lock(&mu_);
  uint64_t known = std::numeric_limits<uint64_t>::max();
  for (const Contact& contact : contacts_) known = std::min(known, contact.member_epoch);
  return known;
}

uint64_t ServerContacts::stored_version() const {
  MutexLock lock(&mu_);
  std::optional<uint64_t> stored;
  for (const Contact& contact : contacts_) {
    if (contact.answers) stored = std::min(stored.value_or(contact.stored), contact.stored);
  }
  return stored.value_or(0);
}

std::vector<std::string> ServerContacts::Missing() const {
  MutexLock lock(&mu_);
  std::vector<std::string> missing;
  for (size_t s = 0; s < contacts_.size(); ++s) {
    if (contacts_[s].answers && !contacts_[s].broken) continue;
    const Server& server = servers_[s];
    missing.push_back(server.address.empty() ? absl::StrCat(server.name, " (it has not registered)")
                                             : absl::StrCat(server.name, " at ", server.address));
  }
  return missing;
}

std::string ServerContacts::HolderOfJob() const {
  MutexLock lock(&mu_);
  for (size_t s = 0; s < contacts_.size(); ++s) {
    const Contact& contact = contacts_[s];
    if (contact.answers && contact.has_job && contact.store_id == 0) return servers_[s].name;
  }
  return "";
}

std::vector<ServerView> ServerContacts::States() const {
  MutexLock lock(&mu_);
  std::vector<ServerView> states;
  for (const Contact& contact : contacts_) states.push_back(contact.state);
  return states;
}

}  // namespace keelson
