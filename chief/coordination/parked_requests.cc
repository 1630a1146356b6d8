#include "chief/coordination/parked_requests.h"

#include <algorithm>

namespace keelson {

ParkedRequests::Id ParkedRequests::Park(Kind kind, uint64_t incarnation, absl::Duration now,
                                        absl::Duration until, Attempt attempt) {
  const Key key = {kind, incarnation};
  const Id id = ++newest_;
  const auto [place, first] = by_member_.try_emplace(key, id);
  if (!first) {
    Request& older = requests_.at(place->second);
    older.overtaken = true;
    SetDue(place->second, &older, -absl::InfiniteDuration());
    place->second = id;
  }
  const absl::Duration due = std::min(until, now + renewal_);
  requests_[id] = {key, std::move(attempt), until, due};
  due_.insert({due, id});
  return id;
}

bool ParkedRequests::Withdraw(Id id) {
  const auto request = requests_.find(id);
  if (request == requests_.end()) return false;
  Remove(request);
  return true;
}

bool ParkedRequests::MakeDue(Kind kind, uint64_t incarnation) {
  const auto place = by_member_.find({kind, incarnation});
  if (place == by_member_.end()) return false;
  SetDue(place->second, &requests_.at(place->second), -absl::InfiniteDuration());
  return true;
}

absl::Duration ParkedRequests::NextDue() const {
  if (requests_.empty()) return absl::InfiniteDuration();
  return rest_ > 0 ? -absl::InfiniteDuration() : due_.begin()->first;
}

std::vector<ParkedRequests::Answer> ParkedRequests::TryDue(absl::Duration now) {
  std::vector<Answer> answers;
  for (size_t attempts = 0; attempts < kAttemptsAtOnce; ++attempts) {
    const auto request = Next(now);
    if (request == requests_.end()) break;
    Try(request, now, &answers);
  }
  return answers;
}

ParkedRequests::Requests::iterator ParkedRequests::Next(absl::Duration now) {
  if (requests_.empty()) rest_ = 0;
  if (rest_ > 0) {
    --rest_;
    auto next = requests_.upper_bound(tried_);
    if (next == requests_.end()) next = requests_.begin();
    tried_ = next->first;
    return next;
  }
  if (due_.empty() || due_.begin()->first > now) return requests_.end();
  return requests_.find(due_.begin()->second);
}

void ParkedRequests::Try(Requests::iterator request, absl::Duration now,
                         std::vector<Answer>* answers) {
  Request& tried = request->second;
  Answer answer = tried.attempt(/*last=*/tried.overtaken || now >= tried.until);
  if (answer == nullptr) {
    SetDue(request->first, &tried, std::min(tried.until, now + renewal_));
    return;
  }
  answers->push_back(std::move(answer));
  Remove(request);
}

void ParkedRequests::SetDue(Id id, Request* request, absl::Duration due) {
  due_.erase({request->due, id});
  request->due = due;
  due_.insert({due, id});
}

void ParkedRequests::Remove(Requests::iterator request) {
  const auto newest = by_member_.find(request->second.key);
  if (newest != by_member_.end() && newest->second == request->first) by_member_.erase(newest);
  due_.erase({request->second.due, request->first});
  requests_.erase(request);
}

}  // namespace keelson
