#include "core/rpc/memory_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace keelson {

MemorySession::~MemorySession() { close(fd_); }

absl::StatusOr<uint64_t> MemorySession::Write(const MemoryRequest& request,
                                              const ByteRope& answer) const {
  if (answer.size() > request.answer_room) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "expected room for an answer of ", answer.size(), " bytes, found ", request.answer_room));
  }
  char* to = memory_->data() + request.answer_at;
  for (const Fragment& fragment : answer.fragments()) {
    std::memcpy(to, fragment.data, fragment.size);
    to += fragment.size;
  }
  return answer.size();
}

absl::Status MemorySession::Tell(uint64_t tag, const absl::StatusOr<uint64_t>& answered,
                                 PacketWait wait) const {
  const MemoryAnswer head = {tag, static_cast<uint64_t>(answered.status().code()),
                             answered.value_or(0)};
  const absl::string_view text = answered.status().message();
  return SendPacket(fd_, &head, sizeof(head), text.substr(0, kMostPacketBytes - sizeof(head)),
                    /*fd=*/-1, wait);
}

bool MemorySession::Begin(uint64_t tag) {
  MutexLock lock(&mu_);
  return waiting_.try_emplace(tag).second;
}

void MemorySession::NoteWait(uint64_t tag, CancelWait cancel) {
  {
    MutexLock lock(&mu_);
    const auto call = waiting_.find(tag);
    if (call == waiting_.end()) return;
    if (!cancelled_) {
      call->second = std::move(cancel);
      return;
    }
  }
  cancel();
}

void MemorySession::Answer(const MemoryRequest& request,
                           const absl::StatusOr<std::string>& answer) {
  {
    MutexLock lock(&mu_);
    waiting_.erase(request.tag);
  }
  absl::StatusOr<uint64_t> answered = uint64_t{0};
  if (answer.ok()) {
    ByteRope bytes;
    bytes.AppendBorrowed(answer->data(), answer->size());
    answered = Write(request, bytes);
  } else {
    answered = answer.status();
  }
  if (!Tell(request.tag, answered, PacketWait::kNever).ok()) shutdown(fd_, SHUT_RDWR);
}

void MemorySession::CancelWaits() {
  std::vector<CancelWait> cancels;
  {
    MutexLock lock(&mu_);
    cancelled_ = true;
    for (auto& [tag, cancel] : waiting_) cancels.push_back(std::exchange(cancel, nullptr));
  }
  for (const CancelWait& cancel : cancels) {
    if (cancel != nullptr) cancel();
  }
}

}  // namespace keelson
