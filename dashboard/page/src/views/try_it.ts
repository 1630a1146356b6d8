// One example by hand, and what the newest snapshot makes of it.

import {ApiError, errorText, isAbort, type ModelTask, type Prediction, type PredictRequest} from "../api";
import {fill, h, keyed, setText} from "../dom";
import {formatCount, formatDuration, formatNumber, formatPercent} from "../format";
import type {Context, View} from "../view";
import "./try_it.css";
import {drawPicture, picture} from "./classification_examples";
import {className} from "./classification_model";
import {ColumnFields} from "./try_it_columns";
import {FeatureFields} from "./try_it_features";
import {isImage} from "./try_it_input";
import {NearestItems} from "./try_it_nearest";
import {Drawing, Paste, Upload, type Source} from "./try_it_sources";

const BETWEEN_MS = 200;  // predictions while the user draws
const BARS = 20;         // classes that are all shown; of more, the likeliest

class TryItPage {
  private readonly root = h("div", {class: "try-it"});
  private readonly ends: (() => void)[] = [];
  private readonly abort = new AbortController();
  private result: Result | undefined;
  private nearest: NearestItems | undefined;  // of models that find items
  private task: ModelTask | undefined;
  private sources: Source[] = [];
  private chosen: Source | undefined;
  private newest = -1;  // step of the newest snapshot that was heard of
  private asked = false;  // there is something that waits for an answer
  private busy = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(root: HTMLElement, private readonly context: Context) {
    root.append(this.root);
    fill(this.root, h("p", {class: "message", testid: "try-it-message"}, "What the model takes is not known yet."));
    this.ends.push(
      context.stream.on("status", (status) => {
        if (status.run === context.run) this.receive(status.task, status.snapshot?.step);
      }),
      context.stream.on("snapshots", (snapshots) => {
        if (snapshots.run === context.run) {
          this.receive(undefined, snapshots.snapshots.find((snapshot) => snapshot.exists)?.step);
        }
      }),
      context.stream.on("hello", () => void this.fetch()));
    const known = context.status();
    this.receive(known?.task, known?.snapshot?.step);
    void this.fetch();
  }

  close(): void {
    this.abort.abort();
    clearTimeout(this.timer);
    for (const end of this.ends) end();
  }

  private async fetch(): Promise<void> {
    try {
      const status = await this.context.api.status(this.context.run, this.abort.signal);
      this.receive(status.task, status.snapshot?.step);
    } catch (error) {
      if (!isAbort(error) && this.task === undefined) {
        fill(this.root, h("p", {class: "message bad"}, errorText(error)));
      }
    }
  }

  private receive(task: ModelTask | undefined, newest: number | undefined): void {
    if (task !== undefined && JSON.stringify(task) !== JSON.stringify(this.task)) {
      this.task = task;
      void this.build(task);
    }
    this.newest = Math.max(this.newest, newest ?? -1);
    if (this.result !== undefined && this.newest > (this.result.step ?? -1)) this.predictSoon();
  }

  private async build(task: ModelTask): Promise<void> {
    if (task.kind === undefined) {
      fill(this.root, h("p", {class: "message", testid: "try-it-message"}, "This model is a script's: nothing is predicted here."));
      return;
    }
    try {
      const sources = await this.sourcesFor(task);
      if (task === this.task) this.show(task, sources);
    } catch (error) {
      if (isAbort(error) || task !== this.task) return;
      this.task = undefined;  // the next status tries again
      fill(this.root, h("p", {class: "message bad", testid: "try-it-message"}, errorText(error)));
    }
  }

  // Columns where the records are made of some; otherwise an image or a row, or of several features, or of ids, these.
  private async sourcesFor(task: ModelTask): Promise<Source[]> {
    const {api, run} = this.context;
    const changed = () => this.predictSoon();
    const shape = task.input_shape;
    this.nearest = undefined;
    if (shape !== undefined && isImage(shape)) return sourcesOf(shape, changed);
    const form = await api.form(run, this.abort.signal);
    this.nearest = form.nearest && new NearestItems(api, run, form.nearest, this.abort.signal);
    if (form.columns !== undefined) return [new ColumnFields(form.columns, form.examples, changed)];
    if (shape !== undefined) return sourcesOf(shape, changed);
    const {features} = await api.model(run, this.abort.signal);
    return [new FeatureFields(features, form.examples, changed)];
  }

  private show(task: ModelTask, sources: Source[]): void {
    this.sources = sources;
    this.result = new Result(task, sources[0] instanceof ColumnFields);
    this.root.classList.toggle("wide", sources[0] instanceof ColumnFields);
    const room = h("div", {class: "source"});
    const choose = (source: Source) => {
      this.chosen = source;
      fill(room, source.element);
      this.predictSoon();
    };
    const segments = h("div", {class: "segments", role: "radiogroup", "aria-label": "Input"}, ...this.sources.map((source, i) =>
      h("label", null, h("input", {
        type: "radio", name: "try-it-source", checked: i === 0, testid: `source-${source.id}`, on: {change: () => choose(source)},
      }), source.title)));
    fill(this.root,
      h("section", {class: "card", "aria-labelledby": "try-it-input"},
        h("header", null, h("h3", {id: "try-it-input"}, "Input"), h("span", {class: "spacer"}),
          this.sources.length > 1 ? segments : null,
          h("button", {type: "button", testid: "clear", on: {click: () => this.chosen?.clear()}}, "Clear")),
        room),
      h("div", {class: "stack"}, this.result.element, this.nearest?.element));
    choose(this.sources[0]!);
  }

  // At most one request at a time, and the last input is the one that is answered.
  private predictSoon(): void {
    this.asked = true;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.predict();
    }, BETWEEN_MS);
  }

  private async predict(): Promise<void> {
    const result = this.result;
    if (this.busy || !this.asked || result === undefined) return;
    this.asked = false;
    const source = this.chosen;
    const request = source?.request() ?? null;
    result.showInput(request);
    void this.nearest?.update(source?.part?.() ?? request);
    if (request === null) {
      result.clear();
      return;
    }
    this.busy = true;
    try {
      result.show(await this.context.api.predict(this.context.run, request, this.abort.signal));
    } catch (error) {
      if (!isAbort(error)) {
        const atField = error instanceof ApiError && error.status === 400 && source?.showError?.(error.message) === true;
        result.fail(atField ? "A value cannot be read." : errorText(error));
      }
    } finally {
      this.busy = false;
    }
    if (this.asked) this.predictSoon();
  }
}

function sourcesOf(shape: number[], changed: () => void): Source[] {
  const image = isImage(shape);
  const paste = new Paste(shape, image, changed);
  return image ? [new Drawing(shape, changed), new Upload(shape, changed), paste] : [paste];
}

// The answer: class and probabilities, or a number; and of which snapshot it is.
class Result {
  readonly element: HTMLElement;
  step: number | undefined;  // of the answer that is shown
  private readonly answer = h("p", {class: "answer", testid: "prediction", "aria-live": "polite"});
  private readonly origin = h("p", {class: "muted small", testid: "prediction-step"});
  private readonly bars = h("ul", {class: "probabilities", testid: "probabilities"});
  private readonly seen: HTMLCanvasElement | undefined;
  private readonly seenBox: HTMLElement;

  constructor(private readonly task: ModelTask, private readonly columns: boolean) {
    const shape = task.input_shape ?? [];
    this.seen = isImage(shape) ? picture(shape, [], 1) : undefined;
    this.seenBox = h("figure", {class: "seen", hidden: true}, this.seen,
      h("figcaption", {class: "muted small"}, "what the model sees"));
    this.element = h("section", {class: "card", "aria-labelledby": "try-it-answer"},
      h("header", null, h("h3", {id: "try-it-answer"}, "Prediction")),
      h("div", {class: "answer-head"}, h("div", null, this.answer, this.origin), h("span", {class: "spacer"}), this.seenBox),
      this.bars);
    this.clear();
  }

  showInput(request: PredictRequest | null): void {
    const example = request !== null && "features" in request ? request.features : null;
    const features = Array.isArray(example) ? example : null;
    this.seenBox.hidden = features === null || this.seen === undefined;
    if (features !== null && this.seen !== undefined) {
      drawPicture(this.seen, this.task.input_shape ?? [], features, 1);
    }
  }

  clear(): void {
    this.step = undefined;
    this.answer.className = "answer muted";
    const shape = this.task.input_shape;
    setText(this.answer, shape === undefined || this.columns ? "Fill in the fields." : isImage(shape) ? "Draw something." : "Paste a row of values.");
    setText(this.origin, "");
    this.bars.replaceChildren();
  }

  fail(message: string): void {
    this.clear();
    this.answer.className = "answer problem";
    setText(this.answer, message);
  }

  show(prediction: Prediction): void {
    this.step = prediction.step;
    this.answer.className = "answer";
    const classes = this.task.classes;
    const name = prediction.class ?? className(classes, prediction.predicted);
    const number = prediction.kind === "regression" || prediction.kind === "retrieval";
    setText(this.answer, number ? formatNumber(prediction.prediction, 5) : name);
    setText(this.origin, `by the snapshot of step ${formatCount(prediction.step)}, in ${formatDuration(prediction.seconds)}`);
    const all = (prediction.probabilities ?? []).map((probability, number) => ({number, probability: probability ?? 0}));
    const shown = all.length <= BARS ? all : [...all].sort((a, b) => b.probability - a.probability).slice(0, BARS);
    keyed(this.bars, shown, (bar) => String(bar.number), (bar) => h("li", {testid: `probability-${bar.number}`},
      h("span", {class: "class-name"}, className(classes, bar.number)),
      h("span", {class: "probability-track"}, h("span", {class: "probability-bar"})), h("span", {class: "number"})),
    (element, bar) => {
      element.classList.toggle("predicted", bar.number === prediction.predicted);
      (element.children[1]!.firstElementChild as HTMLElement).style.width = `${100 * bar.probability}%`;
      setText(element.children[2]!, formatPercent(bar.probability, 2));
    });
  }
}

export const tryIt: View = {
  id: "try",
  title: "Try it",
  mount: (root, context) => new TryItPage(root, context),
};
