import type {Api, EventStream, RunStatus, RunSummary} from "./api";

export type Theme = "light" | "dark";

// What a view is mounted with; it holds until unmount.
export interface Context {
  readonly run: string;
  readonly api: Api;
  readonly stream: EventStream;
  theme(): Theme;
  // Calls back after the theme has changed; returns what ends it.
  onTheme(callback: () => void): () => void;
  // All runs that the server has, as last heard of.
  runs(): RunSummary[];
  // Calls back after others have come or gone; returns what ends it.
  onRuns(callback: () => void): () => void;
  // Of `run`, as last heard of; undefined before the first answer.
  status(): RunStatus | undefined;
}

// One tab of the page. It is mounted into an empty element, at most once at a time; at unmount it ends whatever it has
// started (subscriptions, timers, requests), and the element is emptied by who mounted it.
export interface View {
  readonly id: string;
  readonly title: string;
  mount(root: HTMLElement, context: Context): void;
  unmount(): void;
}
