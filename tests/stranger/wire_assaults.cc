#include "tests/stranger/wire_assaults.h"

#include <unistd.h>
#include <zlib.h>

#include <functional>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace keelson {
namespace {

constexpr absl::Duration kPumpWait = absl::Milliseconds(10);
constexpr uint32_t kHugeBytes = 63 << 20;
constexpr int64_t kBombBytes = 20 << 20;
constexpr int kMostCalls = 128;  // of one connection
constexpr uint32_t kFourGigabytes = 0xFFFFFFFF;
constexpr char kOpenMethod[] = "/keelson.v1.ParameterService/GetStatus";
constexpr char kClosedMethod[] = "/keelson.v1.ParameterService/Push";
constexpr const char* kCalledMethods[] = {kOpenMethod, kClosedMethod,
                                          "/keelson.v1.ChiefService/GetJobStatus",
                                          "/grpc.health.v1.Health/Check"};
constexpr size_t kHoarders = 24;
constexpr absl::Duration kHoardPause = absl::Milliseconds(5);

// Has connection after connection do `act` and be pumped, each until the server closes it or `act`
// returns false; returns how often that was.
int64_t Repeat(const Assault& assault, const std::function<bool(Http2Connection*)>& act,
               bool takes = true) {
  int64_t times = 0;
  while (assault.Goes()) {
    const auto connection = assault.Open();
    while (connection != nullptr && assault.Goes()) {
      ++times;
      const bool more = act(connection.get());
      if (!connection->Pump(kPumpWait, takes) || !more) break;
    }
  }
  return times;
}

// Once per connection, whose bytes are then sent until the server closes it.
int64_t OncePerConnection(const Assault& assault,
                          const std::function<void(Http2Connection*)>& act) {
  int64_t times = 0;
  while (assault.Goes()) {
    const auto connection = assault.Open();
    if (connection == nullptr) continue;
    ++times;
    act(connection.get());
    while (assault.Goes() && connection->Pump(kPumpWait)) {
    }
  }
  return times;
}

int64_t SendHugeMetadata(const Assault& assault) {
  return OncePerConnection(assault, [](Http2Connection* connection) {
    const HeaderList more = {{"keelson-role", std::string(800'000, 'x')}};
    connection->Send(
        HeaderFrames(connection->next_stream(), HeaderBlock(CallHeaders(kClosedMethod, more))));
  });
}

int64_t SendEndlessHeaders(const Assault& assault) {
  return OncePerConnection(assault, [](Http2Connection* connection) {
    const std::string block = HeaderBlock({{"x", std::string(16'000, 'y')}});
    connection->Send(Frame(FrameType::kHeaders, 0, connection->next_stream(), block));
    for (int i = 0; i < 200; ++i) {
      connection->Send(Frame(FrameType::kContinuation, 0, connection->next_stream(), block));
    }
  });
}

int64_t Flood(const Assault& assault, const std::string& frame) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += frame;
  return Repeat(assault, [&](Http2Connection* connection) {
    if (connection->sent_all()) connection->Send(many);
    return true;
  });
}

int64_t FloodPings(const Assault& assault) {
  return Flood(assault, Frame(FrameType::kPing, 0, 0, "stranger"));
}

int64_t FloodSettings(const Assault& assault) {
  return Flood(assault, Frame(FrameType::kSettings, 0, 0,
                              absl::StrCat(std::string("\0\4", 2), NumberBytes(1))));
}

int64_t FloodWindows(const Assault& assault) {
  return Flood(assault, Frame(FrameType::kWindowUpdate, 0, 0, NumberBytes(1)));
}

int64_t FloodResets(const Assault& assault) {
  return Repeat(assault, [&](Http2Connection* connection) {
    for (int i = 0; i < 100 && connection->sent_all(); ++i) {
      connection->Reset(connection->Call(i % 2 == 0 ? kOpenMethod : kClosedMethod, {}, {}));
    }
    return true;
  });
}

// Calls, and takes no answer.
int64_t TakeNoAnswers(const Assault& assault) {
  return Repeat(
      assault,
      [&](Http2Connection* connection) {
        if (connection->under_way() < 1000) connection->Call(kOpenMethod, {}, {GrpcMessage("")});
        return true;
      },
      false);
}

// Begins calls whose messages never become whole.
void AddHugeMessages(uint32_t claimed, Http2Connection* connection) {
  for (int i = 0; i < kMostCalls; ++i) {
    const char* const method = kCalledMethods[static_cast<size_t>(i) % std::size(kCalledMethods)];
    connection->Call(method, {}, {GrpcMessage("", false, claimed), kHugeBytes}, false);
  }
}

int64_t SendHugeMessages(const Assault& assault) {
  return OncePerConnection(
      assault, [](Http2Connection* connection) { AddHugeMessages(kHugeBytes + 1, connection); });
}

int64_t ClaimFourGigabytes(const Assault& assault) {
  return OncePerConnection(
      assault, [](Http2Connection* connection) { AddHugeMessages(kFourGigabytes, connection); });
}

std::string CompressedZeros(int64_t size) {
  const std::string zeros(static_cast<size_t>(size), '\0');
  uLongf length = compressBound(zeros.size());
  std::string compressed(length, '\0');
  compress2(reinterpret_cast<Bytef*>(compressed.data()), &length,
            reinterpret_cast<const Bytef*>(zeros.data()), zeros.size(), 1);
  compressed.resize(length);
  return compressed;
}

// gRPC's "deflate" is zlib's format.
int64_t SendBombs(const Assault& assault) {
  static const auto* const bomb = new std::string(GrpcMessage(CompressedZeros(kBombBytes), true));
  return OncePerConnection(assault, [](Http2Connection* connection) {
    for (int i = 0; i < kMostCalls; ++i) {
      const char* const method = i % 2 == 0 ? kOpenMethod : kClosedMethod;
      connection->Call(method, {{"grpc-encoding", "deflate"}}, {*bomb});
    }
  });
}

int64_t SendRandomBytes(const Assault& assault) {
  return OncePerConnection(
      assault, [&](Http2Connection* connection) { connection->Send(assault.RandomBytes(10'000)); });
}

int64_t SendRandomFrames(const Assault& assault) {
  return Repeat(assault, [&](Http2Connection* connection) {
    const auto type = static_cast<FrameType>(assault.Draw(11));
    const std::string payload = assault.RandomBytes(assault.Draw(100));
    connection->Send(
        Frame(type, static_cast<uint8_t>(assault.Draw(256)), assault.Draw(5), payload));
    return true;
  });
}

int64_t SpeakHttp1(const Assault& assault) {
  return OncePerConnection(assault, [&](Http2Connection* connection) {
    connection->Send("GET / HTTP/1.1\r\nHost: keelson\r\n\r\n");
  });
}

int64_t ComeAndGo(const Assault& assault) {
  int64_t times = 0;
  for (; assault.Goes(); ++times) {
    const absl::StatusOr<int> socket = ConnectFrom(assault.source, assault.port);
    if (socket.ok()) close(*socket);
  }
  return times;
}

}  // namespace

int64_t CallOpenMethods(const Assault& assault) {
  int64_t answered = 0;
  while (assault.Goes()) {
    const auto connection = assault.Open();
    while (connection != nullptr && assault.Goes()) {
      for (const google::protobuf::MethodDescriptor* method : AllMethods()) {
        if (!IsOpenToStrangers(PathOf(method)) || connection->under_way() >= kMostCalls) continue;
        const std::string message = RandomMessage(method->input_type(), assault);
        connection->Call(PathOf(method), {}, {GrpcMessage(message)});
      }
      if (!connection->Pump(kPumpWait)) break;
    }
    answered += connection == nullptr ? 0 : connection->answered();
  }
  return answered;
}

int64_t HoardMessages(const Assault& assault, const std::vector<int>& ports) {
  std::vector<std::unique_ptr<Http2Connection>> connections(kHoarders);
  Assault one = assault;
  int64_t times = 0;
  while (assault.Goes()) {
    for (size_t i = 0; i < connections.size(); ++i) {
      if (connections[i] != nullptr && connections[i]->Pump(absl::ZeroDuration())) continue;
      one.port = ports[i % ports.size()];
      connections[i] = one.Open();
      if (connections[i] == nullptr) continue;
      AddHugeMessages(kHugeBytes + 1, connections[i].get());
      ++times;
    }
    absl::SleepFor(kHoardPause);
  }
  return times;
}

namespace {

constexpr WireAssault kAssaults[] = {
    {"calls that are open to all, answered", CallOpenMethods},
    {"metadata of 800 KB", SendHugeMetadata},
    {"headers without end", SendEndlessHeaders},
    {"pings (thousands)", FloodPings},
    {"settings (thousands)", FloodSettings},
    {"window updates (thousands)", FloodWindows},
    {"calls that are reset (hundreds)", FloodResets},
    {"answers that are not taken", TakeNoAnswers},
    {"connections with 128 messages of 63 MiB", SendHugeMessages},
    {"connections with 128 messages of 4 GiB", ClaimFourGigabytes},
    {"connections with 128 compressed bombs", SendBombs},
    {"random bytes", SendRandomBytes},
    {"random frames", SendRandomFrames},
    {"HTTP/1.1", SpeakHttp1},
    {"connections made and closed", ComeAndGo},
};

}  // namespace

absl::Span<const WireAssault> WireAssaults() { return kAssaults; }

}  // namespace keelson
