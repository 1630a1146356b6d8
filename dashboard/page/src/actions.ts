import {errorText, type Api, type Runs, type RunState, type RunStatus} from "./api";
import {h, setAttribute, setText} from "./dom";

const CHANGEABLE: readonly RunState[] = ["waiting", "running", "restarting"];

// The dialog that changes a running job, where the evaluator allows that. Only the dialog keeps the
// token.
export class Actions {
  readonly button = h("button", {type: "button", hidden: true, testid: "change", on: {click: () => this.dialog.showModal()}}, "Change…");
  readonly dialog: HTMLDialogElement;
  private readonly token = h("input", {type: "password", autocomplete: "off", required: true, testid: "change-token"});
  private readonly mode = h("input", {type: "text", placeholder: "async, ssp:4, sync:3/4", testid: "change-mode"});
  private readonly reason = h("input", {type: "text", maxlength: 200, testid: "change-reason"});
  private readonly answer = h("p", {role: "status", testid: "change-answer"});
  private readOnly = true;
  private status: RunStatus | undefined;

  constructor(private readonly api: Api) {
    this.dialog = h("dialog", {class: "card", "aria-labelledby": "change-title"},
      h("header", null, h("h2", {id: "change-title"}, "Change the job"), h("span", {class: "spacer"}),
        h("button", {type: "button", class: "quiet", on: {click: () => this.dialog.close()}}, "Close")),
      h("form", {class: "stack", on: {submit: (event) => event.preventDefault()}},
        h("label", {class: "field"}, "The job's token", this.token),
        h("div", {class: "field"}, h("label", {class: "field"}, "Consistency", this.mode),
          h("button", {type: "button", testid: "change-set-mode", on: {click: () => void this.setMode()}}, "Set")),
        h("div", {class: "field"}, h("label", {class: "field"}, "Reason", this.reason),
          h("button", {type: "button", testid: "change-end", on: {click: () => void this.end()}}, "End training")),
        this.answer));
    this.dialog.addEventListener("close", () => { this.token.value = ""; });
  }

  setRuns(runs: Runs): void {
    this.readOnly = runs.read_only;
    this.show();
  }

  setStatus(status: RunStatus | undefined): void {
    if (status?.run !== this.status?.run) {
      this.mode.value = status?.mode ?? "";
      setText(this.answer, "");
    }
    this.status = status;
    this.show();
  }

  private show(): void {
    const status = this.status;
    this.button.hidden = this.readOnly || status === undefined || !status.live || !CHANGEABLE.includes(status.state);
  }

  private setMode(): Promise<void> {
    return this.ask((run) => this.api.setMode(run, this.mode.value.trim(), this.token.value), "The chief has taken it.");
  }

  private end(): Promise<void> {
    return this.ask((run) => this.api.endTraining(run, this.reason.value.trim(), this.token.value),
      "Training ends after the steps that are under way.");
  }

  private async ask(request: (run: string) => Promise<unknown>, done: string): Promise<void> {
    if (this.status === undefined || !this.token.reportValidity()) return;
    setAttribute(this.answer, "class", "muted");
    setText(this.answer, "Asking…");
    try {
      await request(this.status.run);
      setText(this.answer, done);
    } catch (error) {
      setAttribute(this.answer, "class", "bad");
      setText(this.answer, errorText(error));
    }
  }
}
