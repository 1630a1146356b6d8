// Makes a transport let go of gradients that it was to send.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_GRADIENT_RELEASE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_GRADIENT_RELEASE_H_

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/client/exchange/exchange_state.h"
#include "core/client/transport/bulk_transport.h"

namespace keelson {

// How often it is checked whether a transport still holds gradients.
inline constexpr absl::Duration kReleasePoll = absl::Milliseconds(1);

// Resets the connections over which a failed call may still be reading gradients of a step that has
// landed, because a later attempt delivered them. Once for each step.
void ReleaseGradients(absl::Span<ExchangeStep> steps, BulkTransport* transport);

// Gives up all calls that hold gradients. With `lent` it waits until none does: they lie in memory
// that nobody else keeps alive.
void AbandonGradients(absl::Span<const ExchangeStep> steps, bool lent, BulkTransport* transport);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_GRADIENT_RELEASE_H_
