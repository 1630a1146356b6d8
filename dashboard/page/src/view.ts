import type {Api, EventStream, RunStatus, RunSummary} from "./api";

export type Theme = "light" | "dark";

// The context with which a view is mounted; valid until it is closed.
export interface Context {
  readonly run: string;
  readonly api: Api;
  readonly stream: EventStream;
  theme(): Theme;
  // Calls back after the theme has changed; returns a function that ends this.
  onTheme(callback: () => void): () => void;
  // All runs of the server, as last received.
  runs(): RunSummary[];
  // Calls back after runs were added or removed; returns a function that ends this.
  onRuns(callback: () => void): () => void;
  // The status of `run`, as last received; undefined before the first answer.
  status(): RunStatus | undefined;
}

// One tab of the page. It is mounted into an empty element, at most once at a time; when it is closed
// it ends all that it has started (subscriptions, timers, requests), and the caller empties the element.
export interface View {
  readonly id: string;
  readonly title: string;
  mount(root: HTMLElement, context: Context): {close(): void};
}
