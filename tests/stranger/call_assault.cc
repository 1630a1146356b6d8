#include "tests/stranger/call_assault.h"

#include "absl/strings/str_cat.h"
#include "core/rpc/credentials.h"
#include "core/rpc/protocol.h"

namespace keelson {
namespace {

using google::protobuf::MethodDescriptor;

constexpr int64_t kMostUnderWay = 64;
constexpr uint32_t kCallsPerConnection = 300;
constexpr int64_t kHugeBytes = 63 << 20;
constexpr absl::Duration kPumpWait = absl::Milliseconds(20);
constexpr absl::Duration kMostWait = absl::Seconds(2);

constexpr const char* kRoles[] = {"chief", "worker", "evaluator", "operator", "root", ""};
constexpr const char* kTokens[] = {"", "a-token-that-somebody-guessed"};

HeaderList Claims(const Assault& assault) {
  const std::string token = kTokens[assault.Draw(std::size(kTokens))];
  HeaderList claims = {{kRoleKey, kRoles[assault.Draw(std::size(kRoles))]}};
  if (assault.Draw(8) != 0) claims.emplace_back(kProtocolKey, kProtocol);
  if (token.empty()) return claims;
  claims.emplace_back(kJobTokenKey, token);
  claims.emplace_back(kAuthorizationKey, absl::StrCat("Bearer ", token));
  return claims;
}

CallBody MessageFor(const MethodDescriptor* method, const Assault& assault) {
  switch (assault.Draw(32)) {
    case 0: {
      const auto claimed = static_cast<uint32_t>(kHugeBytes);
      return {GrpcMessage("", false, claimed), kHugeBytes};
    }
    case 1:
      return {GrpcMessage("")};
    case 2:
      return {GrpcMessage(std::string(100'000, '\x0a'))};  // fields within fields
    default:
      break;
  }
  std::string message = RandomMessage(method->input_type(), assault);
  if (assault.Draw(3) == 0 && !message.empty()) {
    message[assault.Draw(static_cast<uint32_t>(message.size()))] ^=
        static_cast<char>(1 + assault.Draw(255));
  }
  if (assault.Draw(4) == 0) message = assault.RandomBytes(assault.Draw(3000));
  return {GrpcMessage(message)};
}

// Calls on one connection, which is given up when the server closes it or answers nothing.
void CallOnOneConnection(const Assault& assault,
                         const std::vector<const MethodDescriptor*>& methods, size_t* next,
                         CallTally* tally) {
  const auto connection = assault.Open();
  if (connection == nullptr) return;
  absl::Time moved = absl::Now();
  int64_t ended = 0;
  uint32_t calls = 0;
  while (assault.Goes() && absl::Now() < moved + kMostWait) {
    while (connection->under_way() < kMostUnderWay && calls < kCallsPerConnection) {
      const MethodDescriptor* const method = methods[(*next)++ % methods.size()];
      connection->Call(PathOf(method), Claims(assault), MessageFor(method, assault));
      ++tally->sent[PathOf(method)];
      ++calls;
    }
    if (!connection->Pump(kPumpWait)) break;
    if (connection->ended() > ended) moved = absl::Now();
    ended = connection->ended();
    if (calls == kCallsPerConnection && connection->under_way() == 0) break;
  }
  tally->ended += connection->ended();
  tally->answered += connection->answered();
}

}  // namespace

CallTally CallClosedMethods(Assault assault, const std::vector<int>& ports) {
  std::vector<const MethodDescriptor*> methods;
  CallTally tally;
  for (const MethodDescriptor* method : AllMethods()) {
    if (IsOpenToStrangers(PathOf(method))) continue;
    methods.push_back(method);
    tally.sent[PathOf(method)] = 0;
  }
  size_t next = 0;
  for (size_t round = 0; assault.Goes(); ++round) {
    assault.port = ports[round % ports.size()];
    CallOnOneConnection(assault, methods, &next, &tally);
  }
  return tally;
}

}  // namespace keelson
