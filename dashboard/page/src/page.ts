import {Actions} from "./actions";
import {Api, errorText, EventStream, type Runs, type RunStatus, type RunSummary} from "./api";
import {fill, h} from "./dom";
import {Header} from "./header";
import {formatRoute, parseRoute} from "./route";
import {Tabs} from "./tabs";
import {onTheme, theme} from "./theme";
import type {View} from "./view";

const RETRY_MS = 2000;

// The whole page: header, tabs and the view of the run that the address names.
export class Page {
  private readonly api = new Api();
  private readonly stream = new EventStream("/api/v1/events", () => this.isThere());
  private readonly actions = new Actions(this.api);
  private readonly header = new Header((run) => this.go(run, this.shown?.view.id), this.actions.button);
  private readonly tabs: Tabs;
  private runs: RunSummary[] = [];
  private asking = false;  // for the list of runs, because of an unknown one
  private readonly runsWatchers = new Set<() => void>();
  private readonly statuses = new Map<string, RunStatus>();
  private shown: {run: string; view: View; end: () => void} | undefined;

  constructor(private readonly views: readonly View[]) {
    this.tabs = new Tabs(views, (view) => this.go(this.shown?.run, view));
  }

  start(body: HTMLElement): void {
    const skip = h("a", {
      class: "skip-link", href: "#view",
      // The address holds the route.
      on: {click: (event) => { event.preventDefault(); this.tabs.panel.focus(); }},
    }, "Skip to the content");
    body.replaceChildren(skip, this.header.element, this.tabs.element, this.tabs.panel, this.actions.dialog);
    this.stream.on("status", (status) => this.heardOf(status));
    this.stream.on("hello", () => void this.refresh());
    this.stream.onConnection((connection) => this.header.setConnection(connection));
    window.addEventListener("hashchange", () => this.route());
    this.stream.start();
    void this.loadRuns();
  }

  private async isThere(): Promise<boolean> {
    try {
      this.takeRuns(await this.api.runs());
      return true;
    } catch {
      return false;
    }
  }

  private async loadRuns(): Promise<void> {
    try {
      this.takeRuns(await this.api.runs());
    } catch (error) {
      fill(this.tabs.panel, h("p", {class: "message bad", testid: "message"}, `${errorText(error)}; trying again`));
      setTimeout(() => void this.loadRuns(), RETRY_MS);
      return;
    }
    this.route();
  }

  private takeRuns(runs: Runs): void {
    const known = this.runs.map((run) => run.id).join("\n");
    this.runs = runs.runs;
    this.actions.setRuns(runs);
    if (this.shown !== undefined && known !== this.runs.map((run) => run.id).join("\n")) {
      this.header.setRuns(this.runs, this.shown.run);
      this.runsWatchers.forEach((watcher) => watcher());
    }
  }

  // Fetches everything again after a gap in the stream.
  private async refresh(): Promise<void> {
    const run = this.shown?.run;
    if (run === undefined) return;
    try {
      this.setStatus(await this.api.status(run));
    } catch {
      // The stream reports when the server is away, and calls this again afterwards.
    }
  }

  // Takes a status, perhaps that of a new run.
  private heardOf(status: RunStatus): void {
    this.setStatus(status);
    if (!this.runs.some((run) => run.id === status.run) && !this.asking) {
      this.asking = true;
      void this.isThere().finally(() => { this.asking = false; });
    }
  }

  private setStatus(status: RunStatus): void {
    this.statuses.set(status.run, status);
    if (status.run === this.shown?.run) {
      this.header.setStatus(status);
      this.actions.setStatus(status);
    }
  }

  private go(run: string | undefined, view: string | undefined): void {
    if (run !== undefined && view !== undefined) location.hash = formatRoute(run, view);
  }

  private route(): void {
    const wanted = parseRoute(location.hash);
    const run = (this.runs.find((known) => known.id === wanted.run) ?? this.runs.find((known) => known.live) ?? this.runs[0])?.id;
    const view = this.views.find((known) => known.id === wanted.view) ?? this.views[0];
    if (run === undefined || view === undefined) {
      fill(this.tabs.panel, h("p", {class: "message", testid: "message"}, "There is no run here yet."));
      setTimeout(() => void this.loadRuns(), RETRY_MS);
      return;
    }
    if (run === this.shown?.run && view === this.shown.view) return;
    if (formatRoute(run, view.id) !== location.hash) {
      history.replaceState(null, "", formatRoute(run, view.id));
    }
    this.show(run, view);
  }

  private show(run: string, view: View): void {
    const sameRun = run === this.shown?.run;
    this.shown?.end();
    this.tabs.panel.replaceChildren();
    this.tabs.show(view.id);
    const ends = new Set<() => void>();
    let mounted: ReturnType<View["mount"]> | undefined;
    this.shown = {run, view, end: () => { mounted?.close(); ends.forEach((end) => end()); }};
    if (!sameRun) {
      this.header.setRuns(this.runs, run);
      this.header.setStatus(this.statuses.get(run));
      this.actions.setStatus(this.statuses.get(run));
      void this.refresh();
    }
    mounted = view.mount(this.tabs.panel, {
      run, api: this.api, stream: this.stream, theme,
      onTheme: (callback) => {
        const end = onTheme(callback);
        ends.add(end);
        return end;
      },
      runs: () => this.runs,
      onRuns: (callback) => {
        const end = () => { this.runsWatchers.delete(callback); };
        this.runsWatchers.add(callback);
        ends.add(end);
        return end;
      },
      status: () => this.statuses.get(run),
    });
  }
}
