import type {Connection, RunState, RunStatus, RunSummary} from "./api";
import {fill, h, setAttribute, setText} from "./dom";
import {formatBytes, formatCount, formatDuration, formatFinite, formatName, formatNumber, NOTHING} from "./format";
import {onTheme, setTheme, theme} from "./theme";

type Tone = "good" | "warn" | "bad" | "accent" | "";

const TONES: Record<RunState, Tone> = {
  waiting: "", running: "accent", restarting: "warn", stopped: "bad", finishing: "accent", evaluating: "accent", done: "good",
  failed: "bad",
};

// One figure of the header: its name, the value, and a second line about it.
class Figure {
  readonly element: HTMLElement;
  private readonly value: HTMLElement;
  private readonly note: HTMLElement;

  constructor(title: string, testid: string) {
    this.value = h("dd", {class: "figure-value", testid});
    this.note = h("dd", {class: "figure-note", testid: `${testid}-note`});
    this.element = h("div", {class: "figure"}, h("dt", null, title), this.value, this.note);
  }

  set(value: string, note = "", tone: Tone = ""): void {
    setText(this.value, value);
    setAttribute(this.value, "data-tone", tone || undefined);
    setText(this.note, note);
  }
}

// The part that the page always shows: the run, its state, progress and quality. `onRun` is called
// with the chosen run.
export class Header {
  readonly element: HTMLElement;
  private readonly connection = h("div", {class: "banner", role: "alert", testid: "connection", hidden: true});
  private readonly trouble = h("div", {class: "banner", role: "alert", testid: "trouble", hidden: true});
  private readonly title = h("h1", {testid: "run-name"});
  private readonly runs = h("select", {"aria-label": "Run", testid: "run-select", hidden: true});
  private readonly badge = h("span", {class: "badge", testid: "state"});
  // Apart from the badge, so that only a change of the state is read out.
  private readonly announcement = h("span", {class: "visually-hidden", "aria-live": "polite"});
  private readonly stateText = h("span", {class: "muted small state-text", testid: "state-text"});
  private readonly progress = h("progress", {max: 1, "aria-label": "Steps done", testid: "progress"});
  private readonly step = new Figure("Step", "step");
  private readonly loss = new Figure("Training loss", "loss");
  private readonly best = new Figure("Best", "best");
  private readonly speed = new Figure("Throughput", "throughput");
  private readonly snapshot = new Figure("Newest snapshot", "snapshot");
  private status: RunStatus | undefined;
  // When `status` was received, in milliseconds.
  private heard = 0;

  constructor(onRun: (run: string) => void, actions: Node) {
    setInterval(() => this.setSnapshot(this.status), 1000);
    this.runs.addEventListener("change", () => onRun(this.runs.value));
    this.element = h("header", {class: "page-header"}, this.connection, this.trouble,
      h("div", {class: "page-title"},
        h("span", {class: "brand"}, "Keelson"), this.title, this.runs, this.badge, this.announcement, this.stateText,
        h("span", {class: "spacer"}), actions, themeSwitch()),
      h("dl", {class: "figures"},
        h("div", {class: "figure figure-step"}, ...this.step.element.childNodes, this.progress),
        this.best.element, this.loss.element, this.speed.element, this.snapshot.element));
  }

  setRuns(runs: RunSummary[], chosen: string): void {
    fill(this.runs, ...runs.map((run) =>
      h("option", {value: run.id, selected: run.id === chosen}, run.name === run.id ? run.name : `${run.name} (${run.id})`)));
    this.runs.hidden = runs.length < 2;
    this.title.classList.toggle("visually-hidden", runs.length >= 2);
  }

  setConnection(connection: Connection | undefined): void {
    this.connection.hidden = connection === undefined || connection === "open";
    setAttribute(this.connection, "data-tone", connection === "lost" ? "bad" : undefined);
    setText(this.connection, connection === "polling"
      ? "The dashboard gives this page no live updates (too many pages are open); it is brought up to date every few seconds."
      : "The dashboard does not answer; trying again. What is shown is the last that was heard.");
    this.element.classList.toggle("outdated", connection === "lost");
  }

  // Undefined: nothing is known yet.
  setStatus(status: RunStatus | undefined): void {
    this.status = status;
    this.heard = performance.now();
    const name = status?.name ?? "";
    setText(this.title, name);
    document.title = status === undefined ? "Keelson" : `${name} – Keelson`;
    this.setState(status);
    this.setStep(status);
    this.loss.set(formatFinite(status?.loss),
      status?.learning_rate == null ? "" : `learning rate ${formatNumber(status.learning_rate, 3)}`, status?.loss === null ? "bad" : "");
    const best = status?.best;
    this.best.set(best === undefined ? NOTHING : formatFinite(best.value),
      best === undefined ? "" : `${formatName(best.metric)} at step ${formatCount(best.step)}${best.exists ? "" : ", deleted"}`);
    this.speed.set(status?.steps_per_second == null ? NOTHING : `${formatNumber(status.steps_per_second, 3)} steps/s`,
      status?.examples_per_second == null ? "" : `${formatCount(status.examples_per_second)} examples/s`);
    this.setSnapshot(status);
  }

  private setState(status: RunStatus | undefined): void {
    const state = status?.state ?? "";
    this.badge.hidden = status === undefined;
    setText(this.badge, state);
    setAttribute(this.badge, "data-tone", status === undefined ? "" : TONES[status.state] ?? "");
    setText(this.announcement, status === undefined ? "" : `State: ${state}`);
    const text = status?.end_reason || status?.state_text || "";
    const error = status?.error ?? "";
    const away = status !== undefined && (status.state === "restarting" || status.state === "stopped");
    this.trouble.hidden = error === "" && !away;
    setAttribute(this.trouble, "data-tone", status?.state === "restarting" ? undefined : "bad");
    setText(this.trouble, error || (status?.state_text ?? ""));
    // The same text is not shown twice.
    setText(this.stateText, text === state || (away && text === this.trouble.textContent) ? "" : text);
  }

  private setStep(status: RunStatus | undefined): void {
    const step = status?.step;
    const max = status?.max_steps;
    const stream = status?.stream;
    const epoch = stream !== undefined
      ? `${formatCount(stream.done_records)} of ${formatCount(stream.known_records)} records${stream.ended ? "" : " so far"}`
      : status?.epoch == null ? "" : `epoch ${formatNumber(status.epoch, 3)}`;
    const eta = status?.eta_seconds == null ? "" : `${formatDuration(status.eta_seconds)} left`;
    this.step.set(step === undefined ? NOTHING : max ? `${formatCount(step)} of ${formatCount(max)}` : formatCount(step),
      [eta, epoch].filter((part) => part !== "").join(" · "));
    // Training that was ended early looks as if it had stopped half-way.
    this.progress.hidden = step === undefined || !max || status?.state === "done";
    this.progress.value = step !== undefined && max ? Math.min(step / max, 1) : 0;
  }

  private setSnapshot(status: RunStatus | undefined): void {
    const snapshot = status?.snapshot;
    const since = (performance.now() - this.heard) / 1000;
    const notes = [
      snapshot?.age_seconds == null ? "" : `${formatDuration(Math.floor(snapshot.age_seconds + since))} ago`,
      snapshot?.bytes === undefined ? "" : formatBytes(snapshot.bytes),
      snapshot?.failures ? `${snapshot.failures} failed` : "",
    ];
    this.snapshot.set(snapshot?.step === undefined ? NOTHING : `step ${formatCount(snapshot.step)}`,
      notes.filter((note) => note !== "").join(" · "));
  }
}

function themeSwitch(): HTMLElement {
  const button = h("button", {
    type: "button", class: "quiet", testid: "theme-switch",
    on: {click: () => setTheme(theme() === "dark" ? "light" : "dark")},
  });
  const show = () => {
    setText(button, theme() === "dark" ? "Light" : "Dark");
    setAttribute(button, "aria-label", theme() === "dark" ? "Use light colours" : "Use dark colours");
  };
  show();
  onTheme(show);
  return button;
}
