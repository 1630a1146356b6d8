#include "core/rpc/hand_over_queue.h"

#include <algorithm>
#include <utility>

namespace keelson {

void HandOverQueue::Add(const std::string& address, uint64_t id) {
  std::deque<uint64_t>& waiting = addresses_[address].waiting;
  if (waiting.empty()) turns_.push_back(address);
  waiting.push_back(id);
}

absl::Time HandOverQueue::RoomAt(const std::string& name, const Address& address) const {
  const auto delayed = delayed_.find(name);
  const absl::Time end = delayed == delayed_.end() ? absl::InfinitePast() : delayed->second;
  const std::vector<HandedOver>& handed_over = address.handed_over;
  if (handed_over.size() < limits_.at_once) return end;
  return std::max(end, handed_over[handed_over.size() - limits_.at_once].at + limits_.introduction);
}

absl::Time HandOverQueue::NextRoom() const {
  absl::Time next = absl::InfiniteFuture();
  for (const std::string& name : turns_) next = std::min(next, RoomAt(name, addresses_.at(name)));
  return next;
}

void HandOverQueue::Delay(const std::string& address, absl::Time until) {
  absl::Time& end = delayed_.try_emplace(address, absl::InfinitePast()).first->second;
  end = std::max(end, until);
}

std::optional<HandOverQueue::Next> HandOverQueue::Take(absl::Time now) {
  std::erase_if(delayed_, [now](const auto& entry) { return entry.second <= now; });
  for (size_t i = turns_.size(); i > 0; --i) {
    std::string name = std::move(turns_.front());
    turns_.pop_front();
    Address& address = addresses_.at(name);
    if (RoomAt(name, address) > now) {
      turns_.push_back(std::move(name));
      continue;
    }
    Next next{address.waiting.front(), std::nullopt};
    address.waiting.pop_front();
    if (!address.waiting.empty()) turns_.push_back(name);
    if (address.handed_over.size() >= limits_.of_address) {
      next.displaced = address.handed_over.front().id;
      address.handed_over.erase(address.handed_over.begin());
      Delay(name, now + limits_.pause);
    }
    address.handed_over.push_back({next.id, now});
    return next;
  }
  return std::nullopt;
}

void HandOverQueue::Remove(const std::string& address, uint64_t id) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return;
  std::vector<HandedOver>& handed_over = found->second.handed_over;
  std::erase_if(handed_over, [id](const HandedOver& one) { return one.id == id; });
  std::deque<uint64_t>& waiting = found->second.waiting;
  if (std::erase(waiting, id) > 0 && waiting.empty()) std::erase(turns_, address);
  if (waiting.empty() && handed_over.empty()) addresses_.erase(found);
}

}  // namespace keelson
