import type {
  Cluster, Form, Model, Nearest, Placement, Prediction, PredictRequest, Report, Runs, RunStatus, SeriesData, SeriesList, SnapshotComparison,
  Snapshots,
} from "./api_types";

export type * from "./api_types";
export {EventStream, type Connection} from "./event_stream";

// An error that the server answered; status 0: it did not answer.
export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

// Names per request of series/data.
const MAX_NAMES = 64;
const ATTEMPTS_WHEN_BUSY = 3;

export interface SeriesQuery {
  points?: number;
  x?: "step" | "time";
  from?: number;
  to?: number;
}

// The functions of docs/dashboard-api.md. Each fails with an ApiError, or with an AbortError where its signal says so.
export class Api {
  runs(signal?: AbortSignal): Promise<Runs> {
    return this.get("/api/v1/runs", [], signal);
  }

  status(run: string, signal?: AbortSignal): Promise<RunStatus> {
    return this.get(path(run), [], signal);
  }

  series(run: string, signal?: AbortSignal): Promise<SeriesList> {
    return this.get(path(run, "series"), [], signal);
  }

  async seriesData(run: string, names: string[], query: SeriesQuery = {}, signal?: AbortSignal): Promise<SeriesData> {
    const parameters = Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]);
    const parts: Promise<SeriesData>[] = [];
    for (let begin = 0; begin < names.length; begin += MAX_NAMES) {
      const part = names.slice(begin, begin + MAX_NAMES).map((name): [string, string] => ["name", name]);
      parts.push(this.get(path(run, "series/data"), [...part, ...parameters], signal));
    }
    return {run, series: (await Promise.all(parts)).flatMap((part) => part.series)};
  }

  // The address from which the points of these series can be saved.
  seriesCsvUrl(run: string, names: string[]): string {
    return url(path(run, "series.csv"), names.map((name) => ["name", name]));
  }

  snapshots(run: string, signal?: AbortSignal): Promise<Snapshots> {
    return this.get(path(run, "snapshots"), [], signal);
  }

  compareSnapshots(run: string, a: number, b: number, signal?: AbortSignal): Promise<SnapshotComparison> {
    return this.get(path(run, "snapshots/compare"), [["a", String(a)], ["b", String(b)]], signal);
  }

  cluster(run: string, signal?: AbortSignal): Promise<Cluster> {
    return this.get(path(run, "cluster"), [], signal);
  }

  placement(run: string, signal?: AbortSignal): Promise<Placement> {
    return this.get(path(run, "placement"), [], signal);
  }

  // Without a step: the newest one.
  report(run: string, step?: number, signal?: AbortSignal): Promise<Report> {
    return this.get(path(run, "report"), step === undefined ? [] : [["step", String(step)]], signal);
  }

  model(run: string, signal?: AbortSignal): Promise<Model> {
    return this.get(path(run, "model"), [], signal);
  }

  form(run: string, signal?: AbortSignal): Promise<Form> {
    return this.get(path(run, "form"), [], signal);
  }

  predict(run: string, request: PredictRequest, signal?: AbortSignal): Promise<Prediction> {
    return this.post(path(run, "predict"), request, undefined, signal);
  }

  nearest(run: string, query: PredictRequest, k: number, signal?: AbortSignal): Promise<Nearest> {
    return this.post(path(run, "nearest"), {...query, k}, undefined, signal);
  }

  endTraining(run: string, reason: string, token: string): Promise<unknown> {
    return this.post(path(run, "actions/end_training"), {reason}, token);
  }

  setMode(run: string, mode: string, token: string): Promise<unknown> {
    return this.post(path(run, "actions/set_mode"), {mode}, token);
  }

  private get<T>(where: string, parameters: [string, string][], signal?: AbortSignal): Promise<T> {
    return request<T>(url(where, parameters), {signal: signal ?? null});
  }

  private post<T>(where: string, body: unknown, token?: string, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = {"Content-Type": "application/json"};
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    return request<T>(where, {method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null});
  }
}

// Whether the caller aborted the request.
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

// Whether the server's answer had an unexpected form.
export function isMisshapen(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

// One line for the page's reader.
export function errorText(error: unknown): string {
  if (isMisshapen(error)) return "This cannot be shown: what the dashboard answered is not as expected";
  return error instanceof Error ? error.message : String(error);
}

function path(run: string, rest?: string): string {
  return `/api/v1/runs/${encodeURIComponent(run)}${rest === undefined ? "" : `/${rest}`}`;
}

function url(where: string, parameters: [string, string][]): string {
  const query = new URLSearchParams(parameters).toString();
  return query === "" ? where : `${where}?${query}`;
}

async function request<T>(where: string, init: RequestInit): Promise<T> {
  for (let attempt = 1;; ++attempt) {
    let response: Response;
    try {
      response = await fetch(where, {cache: "no-store", credentials: "omit", ...init});
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new ApiError(0, "the dashboard does not answer");
    }
    if (response.status === 429 && attempt < ATTEMPTS_WHEN_BUSY) {
      const seconds = Number(response.headers.get("Retry-After") ?? "1");
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(Math.max(seconds, 0.2), 5)));
      continue;
    }
    return answer<T>(response);
  }
}

async function answer<T>(response: Response): Promise<T> {
  const text = await response.text();
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new ApiError(response.status, `the dashboard answered ${response.status} with something that is not JSON`);
  }
  if (!response.ok) {
    const message = (body as {error?: unknown}).error;
    throw new ApiError(response.status, typeof message === "string" ? message : `error ${response.status}`);
  }
  return body as T;
}
