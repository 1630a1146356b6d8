// What the tests use of node.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}

declare module "node:assert/strict" {
  export function equal<T>(actual: T, expected: T): void;
  export function deepEqual<T>(actual: T, expected: T): void;
  export function ok(value: unknown, message?: string): asserts value;
  export function throws(body: () => void, error: object): void;
  export function rejects(promise: Promise<unknown>, error: object): Promise<void>;
}
