import {isString, load, save} from "./storage";
import type {Theme} from "./view";

const KEY = "theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const callbacks = new Set<() => void>();

// The system's choice until the reader makes one.
export function theme(): Theme {
  const chosen = load(KEY, isString);
  if (chosen === "light" || chosen === "dark") return chosen;
  return systemIsDark.matches ? "dark" : "light";
}

export function setTheme(chosen: Theme): void {
  save(KEY, chosen);
  show();
}

// Calls back after a change; returns a function that ends this.
export function onTheme(callback: () => void): () => void {
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

export function startTheme(): void {
  show();
  systemIsDark.addEventListener("change", show);
}

function show(): void {
  const root = document.documentElement;
  if (root.dataset["theme"] !== theme()) {
    root.dataset["theme"] = theme();
    for (const callback of [...callbacks]) callback();
  }
}
