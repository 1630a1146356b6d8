import {deepEqual, equal, ok} from "node:assert/strict";
import {test} from "node:test";
import {EventStream, type Connection} from "../src/event_stream";

// Stands for the browser's EventSource; a test says what comes.
class FakeSource {
  static readonly all: FakeSource[] = [];
  closed = false;
  private readonly listeners = new Map<string, (message: {data: string}) => void>();

  constructor(readonly url: string) {
    FakeSource.all.push(this);
  }

  addEventListener(event: string, listener: (message: {data: string}) => void): void {
    this.listeners.set(event, listener);
  }

  close(): void {
    this.closed = true;
  }

  say(event: string, data = ""): void {
    this.listeners.get(event)?.({data});
  }
}

// A stream, what was asked of its surroundings, and what it has told.
class Scene {
  readonly told: string[] = [];
  readonly delays: number[] = [];
  readonly stream: EventStream;
  there = true;
  private due: (() => void) | undefined;

  constructor() {
    FakeSource.all.length = 0;
    Object.assign(globalThis, {
      EventSource: FakeSource,
      setTimeout: (f: () => void, delay: number) => { this.due = f; this.delays.push(delay); return 1; },
      clearTimeout: () => { this.due = undefined; },
    });
    this.stream = new EventStream("/events", () => Promise.resolve(this.there));
    this.stream.onConnection((connection: Connection) => this.told.push(connection));
    this.stream.on("hello", () => this.told.push("hello"));
    this.stream.on("status", (status) => this.told.push(`status ${status.run}`));
    this.stream.start();
  }

  source(): FakeSource {
    return FakeSource.all.at(-1)!;
  }

  async breakOff(there: boolean): Promise<void> {
    this.there = there;
    this.source().say("error");
    for (let i = 0; i < 5; ++i) await Promise.resolve();
  }

  wait(): void {
    const due = this.due;
    ok(due);
    this.due = undefined;
    due();
  }
}

test("a stream that begins is open, and its events are told", () => {
  const scene = new Scene();
  equal(scene.source().url, "/events");
  scene.source().say("hello", "{\"time\": 1}");
  scene.source().say("status", "{\"run\": \"mnist\"}");
  deepEqual(scene.told, ["open", "hello", "status mnist"]);
});

test("an event that is cut off is left out", () => {
  const scene = new Scene();
  scene.source().say("hello", "{\"time\": 1}");
  scene.source().say("status", "{\"run\": \"mn");
  deepEqual(scene.told, ["open", "hello"]);
});

test("a server that is away is lost, is asked again ever later, and is open again when it is back", async () => {
  const scene = new Scene();
  scene.source().say("hello", "{\"time\": 1}");
  for (let i = 0; i < 5; ++i) {
    await scene.breakOff(false);
    scene.wait();
  }
  deepEqual(scene.told, ["open", "hello", "lost"]);
  deepEqual(scene.delays, [500, 1000, 2000, 4000, 5000]);
  equal(FakeSource.all.filter((source) => !source.closed).length, 1);
  scene.source().say("hello", "{\"time\": 2}");
  deepEqual(scene.told.slice(3), ["open", "hello"]);
  await scene.breakOff(false);
  equal(scene.delays.at(-1), 500);
});

test("a server that answers but gives no stream is polled: each try says hello", async () => {
  const scene = new Scene();
  await scene.breakOff(true);
  scene.wait();
  await scene.breakOff(true);
  deepEqual(scene.told, ["polling", "hello", "hello"]);
  deepEqual(scene.delays, [5000, 5000]);
});

test("an old source's end changes nothing", async () => {
  const scene = new Scene();
  const old = scene.source();
  scene.stream.start();
  ok(old.closed);
  old.say("error");
  await Promise.resolve();
  equal(FakeSource.all.length, 2);
  deepEqual(scene.told, []);
});

test("a handler that has ended hears nothing", () => {
  const scene = new Scene();
  const heard: number[] = [];
  const end = scene.stream.on("hello", (hello) => heard.push(hello.time));
  scene.source().say("hello", "{\"time\": 1}");
  end();
  scene.source().say("hello", "{\"time\": 2}");
  deepEqual(heard, [1]);
});
