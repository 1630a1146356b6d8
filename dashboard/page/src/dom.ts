// Builders and small helpers. Text of a run reaches the page through text nodes and attributes only.

export type Child = Node | string | number | null | undefined | false;

export interface Props {
  class?: string | undefined;
  // data-testid, which the browser test looks for.
  testid?: string | undefined;
  // Listeners by event name.
  on?: {[K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void};
  // Attributes: true is set without a value, false and undefined are left out.
  [attribute: string]: unknown;
}

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props | null = null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

// The same for SVG.
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, props: Props | null = null, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.append(child instanceof Node ? child : String(child));
    }
  }
}

// Replaces the content of `parent`.
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

// Changes nothing where the text is there already, so that screen readers and selections are left alone.
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) {
    element.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

// Makes the children of `parent` one per item, in order, and keeps the elements of items that stay (with their focus).
export function keyed<Item, E extends Element>(
  parent: Element, items: readonly Item[], key: (item: Item) => string,
  create: (item: Item) => E, update: (element: E, item: Item) => void = () => {}): void {
  const old = new Map<string, Element>();
  for (const child of [...parent.children]) old.set(child.getAttribute("data-key") ?? "", child);
  let place: Element | null = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let element = old.get(name) as E | undefined;
    old.delete(name);
    if (element === undefined) {
      element = create(item);
      element.setAttribute("data-key", name);
    }
    update(element, item);
    if (element === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(element, place);
    }
  }
  for (const element of old.values()) element.remove();
}

// The value of a variable of the style sheet, as it is under the present theme.
export function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Calls `f` at most once per frame however often what it returns is called. `cancel` forgets a call that is due.
export function oncePerFrame(f: () => void): {(): void; cancel(): void} {
  let due: number | undefined;
  const call = () => {
    due ??= requestAnimationFrame(() => {
      due = undefined;
      f();
    });
  };
  call.cancel = () => {
    if (due !== undefined) {
      cancelAnimationFrame(due);
      due = undefined;
    }
  };
  return call;
}

// Lets the user save `blob` under `name`.
export function saveBlob(blob: Blob, name: string): void {
  const link = h("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function apply(element: Element, props: Props | null): void {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value as object)) {
        element.addEventListener(event, listener as EventListener);
      }
    } else if (name === "testid") {
      element.setAttribute("data-testid", String(value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}
