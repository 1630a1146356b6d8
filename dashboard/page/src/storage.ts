// The reader's choices, kept by the browser; if it keeps nothing, as long as the page is open.

const PREFIX = "keelson.";
const memory = new Map<string, string>();

// The stored value, or undefined if there is none that `check` accepts.
export function load<T>(key: string, check: (value: unknown) => value is T): T | undefined {
  try {
    const text = memory.get(key) ?? localStorage.getItem(PREFIX + key);
    const value: unknown = text === null ? undefined : JSON.parse(text);
    return check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function save(key: string, value: unknown): void {
  const text = JSON.stringify(value);
  memory.set(key, text);
  try {
    localStorage.setItem(PREFIX + key, text);
  } catch {
    // Storage is refused or full: `memory` has it.
  }
}

export const isString = (value: unknown): value is string => typeof value === "string";
export const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
export const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);
