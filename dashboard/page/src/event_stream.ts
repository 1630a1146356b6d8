import type {StreamEvents} from "./api_types";

// `open`: events come. `lost`: the server does not answer. `polling`: it answers but gives no stream (too many pages).
export type Connection = "open" | "lost" | "polling";

type Handler<K extends keyof StreamEvents> = (data: StreamEvents[K]) => void;

const EVENTS: readonly (keyof StreamEvents)[] = ["hello", "status", "cluster", "series", "snapshots"];
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 5000;

// The server-sent events of all runs, opened again whenever they end. After each `hello` earlier
// data must be fetched. While there is no stream but the server answers, a `hello` comes every few
// seconds, so that views that fetch then stay up to date.
export class EventStream {
  private readonly handlers = new Map<keyof StreamEvents, Set<(data: never) => void>>();
  private readonly watchers = new Set<(connection: Connection) => void>();
  private source: EventSource | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private delay = FIRST_DELAY_MS;
  private state: Connection | undefined;

  // `isThere` says whether the server answers at all.
  constructor(private readonly url: string, private readonly isThere: () => Promise<boolean>) {}

  start(): void {
    this.stop();
    const source = new EventSource(this.url);
    this.source = source;
    for (const event of EVENTS) {
      source.addEventListener(event, (message) => {
        if (event === "hello") {
          this.delay = FIRST_DELAY_MS;
          this.setConnection("open");
        }
        this.dispatch(event, (message as MessageEvent<string>).data);
      });
    }
    source.addEventListener("error", () => {
      if (this.source === source) void this.startAgain();
    });
  }

  stop(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = undefined;
  }

  // Returns a function that removes the listener.
  on<K extends keyof StreamEvents>(event: K, handler: Handler<K>): () => void {
    const handlers = this.handlers.get(event) ?? new Set();
    this.handlers.set(event, handlers);
    handlers.add(handler);
    return () => handlers.delete(handler);
  }

  onConnection(watcher: (connection: Connection) => void): void {
    this.watchers.add(watcher);
  }

  private async startAgain(): Promise<void> {
    this.stop();
    const there = await this.isThere();
    this.setConnection(there ? "polling" : "lost");
    if (there) this.emit("hello", {time: Date.now() / 1000});
    this.retry = setTimeout(() => this.start(), there ? LONGEST_DELAY_MS : this.delay);
    this.delay = Math.min(2 * this.delay, LONGEST_DELAY_MS);
  }

  private dispatch(event: keyof StreamEvents, text: string): void {
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      return;  // Cut off by the end of the connection; the next hello brings it.
    }
    this.emit(event, data);
  }

  private emit(event: keyof StreamEvents, data: unknown): void {
    for (const handler of [...(this.handlers.get(event) ?? [])]) {
      (handler as (data: unknown) => void)(data);
    }
  }

  private setConnection(connection: Connection): void {
    if (connection === this.state) return;
    this.state = connection;
    for (const watcher of [...this.watchers]) watcher(connection);
  }
}
