import {h, setAttribute} from "./dom";
import type {View} from "./view";

// The views as a list of tabs: arrow keys, Home and End move between them.
export class Tabs {
  readonly element: HTMLElement;
  readonly panel = h("main", {id: "view", role: "tabpanel", tabindex: -1, class: "view"});
  private readonly buttons: HTMLButtonElement[];

  constructor(private readonly views: readonly View[], private readonly onView: (view: string) => void) {
    this.buttons = views.map((view, i) => h("button", {
      type: "button", role: "tab", id: `tab-${view.id}`, testid: `tab-${view.id}`, "aria-controls": "view",
      on: {click: () => onView(view.id), keydown: (event) => this.move(event, i)},
    }, view.title));
    this.element = h("div", {class: "tabs", role: "tablist", "aria-label": "Views"}, ...this.buttons);
  }

  show(view: string): void {
    for (const [i, button] of this.buttons.entries()) {
      const shown = this.views[i]?.id === view;
      setAttribute(button, "aria-selected", shown ? "true" : "false");
      button.tabIndex = shown ? 0 : -1;
      if (shown) button.scrollIntoView({block: "nearest", inline: "nearest"});
    }
    setAttribute(this.panel, "aria-labelledby", `tab-${view}`);
  }

  private move(event: KeyboardEvent, from: number): void {
    const count = this.buttons.length;
    const to = {ArrowRight: (from + 1) % count, ArrowLeft: (from + count - 1) % count, Home: 0, End: count - 1}[event.key];
    const view = to === undefined ? undefined : this.views[to];
    if (to !== undefined && view !== undefined) {
      event.preventDefault();
      this.onView(view.id);
      this.buttons[to]?.focus();
    }
  }
}
