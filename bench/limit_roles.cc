#include "bench/limit_roles.h"

#include <cstring>
#include <string>

#include "bench/message_memory.h"
#include "bench/socket.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

MessageMemory MemoryOf(const json& spec) {
  return MessageMemory(spec.at("message_bytes").get<size_t>(),
                       spec.at("memory_bytes").get<size_t>());
}

class RawReceiver : public PeerRole {
 public:
  RawReceiver(Socket listener, MessageMemory memory)
      : listener_(std::move(listener)), memory_(std::move(memory)) {}

  json Ready() const override { return {{"address", AddressOf(listener_)}}; }

  absl::StatusOr<json> Do(const json& command) override {
    ASSIGN_OR_RETURN(const Socket socket, Accept(listener_));
    Meter meter(WindowOf(command));
    Meter::Operation message;
    message.pushed_bytes = static_cast<int64_t>(memory_.message_bytes());
    do {
      message.started = message.ended;
      if (socket.Receive(memory_.Next(), memory_.message_bytes()) < memory_.message_bytes()) {
        return absl::InternalError("the sender hung up");
      }
      message.ended = MonotonicSeconds();
    } while (meter.Count(message));
    return ToJson(meter.Report());
  }

 private:
  const Socket listener_;
  MessageMemory memory_;
};

class RawSender : public PeerRole {
 public:
  RawSender(std::string address, MessageMemory memory)
      : address_(std::move(address)), memory_(std::move(memory)) {}

  absl::StatusOr<json> Do(const json& command) override {
    ASSIGN_OR_RETURN(const Socket socket, Connect(address_));
    while (socket.Send(memory_.Next(), memory_.message_bytes())) {
    }
    return ToJson(ClientReport());
  }

 private:
  const std::string address_;
  MessageMemory memory_;
};

class MemoryCopier : public PeerRole {
 public:
  explicit MemoryCopier(const json& spec) : from_(MemoryOf(spec)), to_(MemoryOf(spec)) {}

  absl::StatusOr<json> Do(const json& command) override {
    Meter meter(WindowOf(command));
    Meter::Operation copy;
    copy.pushed_bytes = static_cast<int64_t>(from_.message_bytes());
    do {
      copy.started = copy.ended;
      std::memcpy(to_.Next(), from_.Next(), from_.message_bytes());
      copy.ended = MonotonicSeconds();
    } while (meter.Count(copy));
    return ToJson(meter.Report());
  }

 private:
  MessageMemory from_;
  MessageMemory to_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerRole>> MakeRawReceiver(const json& spec) {
  const Transport transport = TransportFromName(spec.at("transport").get<std::string>());
  ASSIGN_OR_RETURN(Socket listener, Listen(transport));
  return std::make_unique<RawReceiver>(std::move(listener), MemoryOf(spec));
}

absl::StatusOr<std::unique_ptr<PeerRole>> MakeRawSender(const json& spec) {
  return std::make_unique<RawSender>(spec.at("address").get<std::string>(), MemoryOf(spec));
}

absl::StatusOr<std::unique_ptr<PeerRole>> MakeMemoryCopier(const json& spec) {
  return std::make_unique<MemoryCopier>(spec);
}

}  // namespace keelson::bench
