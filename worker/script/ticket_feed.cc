#include "worker/script/ticket_feed.h"

#include <algorithm>
#include <optional>

#include "core/base/status_macros.h"
#include "core/data/record_order.h"
#include "core/script/script_message.h"

namespace keelson {

TicketFeed::TicketFeed(const ScriptRecords& records, TicketSource* source, ScriptTickets* tickets,
                       const std::atomic<int64_t>* step, ScriptSocket* script)
    : records_(records), source_(source), tickets_(tickets), step_(step), script_(script) {
  tickets_->Restart();
  thread_ = Thread([this] { Run(); });
}

TicketFeed::~TicketFeed() {
  tickets_->Stop();
  thread_.Join();
}

absl::Status TicketFeed::status() const {
  MutexLock lock(&mu_);
  return status_;
}

absl::Status TicketFeed::Give(uint64_t count) {
  bool may_fetch = tickets_->none_is_fetched();
  for (; count > 0; --count) {
    std::optional<Ticket> ticket = tickets_->TakeReserve();
    if (!ticket.has_value() && may_fetch) ticket = source_->Ready();
    if (!ticket.has_value()) break;
    RETURN_IF_ERROR(Tell(tickets_->Add(*ticket), *ticket));
  }
  tickets_->Want(count);
  if (count > 0 && done_) return TellNoMore();
  // The chief is asked for more while the script computes.
  if (may_fetch && count == 0 && !source_->has_ready()) tickets_->WantReserve();
  return absl::OkStatus();
}

void TicketFeed::Run() {
  const absl::Status status = Fetch();
  MutexLock lock(&mu_);
  status_ = status;
}

absl::Status TicketFeed::Fetch() {
  while (tickets_->AwaitWanted()) {
    ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, source_->Next());
    if (!ticket.has_value()) {
      done_ = true;
      return tickets_->wanted() ? TellNoMore() : absl::OkStatus();
    }
    const std::optional<uint64_t> number = tickets_->AddFetched(*ticket);
    if (number.has_value()) RETURN_IF_ERROR(Tell(*number, *ticket));
  }
  return absl::OkStatus();
}

absl::Status TicketFeed::TellNoMore() {
  if (told_no_more_.exchange(true)) return absl::OkStatus();
  return script_->Send(ScriptMessageWriter(ScriptMessageKind::kNoMore)
                           .Number(static_cast<uint64_t>(*step_))
                           .message());
}

absl::Status TicketFeed::Tell(uint64_t number, const Ticket& ticket) {
  const RecordOrder order(records_.count, records_.seed, ticket.epoch, records_.sequential,
                          records_.order_group);
  constexpr auto kMost = static_cast<int64_t>(kTicketRecords);
  for (int64_t first = ticket.begin; first < ticket.end; first += kMost) {
    ScriptMessageWriter writer(ScriptMessageKind::kTicket);
    writer.Number(number).Number(ticket.step).Number(ticket.epoch);
    writer.Number(ticket.begin).Number(ticket.end);
    writer.Number(ticket.fresh_values ? kTicketWantsValues : 0);
    writer.Number(first - ticket.begin);
    const int64_t end = std::min(ticket.end, first + kMost);
    for (int64_t position = first; position < end; ++position) {
      writer.Number(order.Record(position));
    }
    RETURN_IF_ERROR(script_->Send(writer.message()));
  }
  return absl::OkStatus();
}

}  // namespace keelson
