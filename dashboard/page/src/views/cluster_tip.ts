import {h} from "../dom";

const MARGIN = 8;  // pixels to the pointer's element and to the window's edges

// A small box with exact values beside what the pointer is on or the keyboard's focus is at. One per view; Escape hides it.
export class Tip {
  readonly element = h("div", {class: "tip", role: "tooltip", hidden: true});
  private target: Element | undefined;
  private content: (() => Node[]) | undefined;

  // `content` is called whenever the box shows or `refresh` is called; empty content: no box.
  attach(target: HTMLElement | SVGElement, content: () => Node[]): void {
    const show = () => this.show(target, content);
    const hide = () => this.hide(target);
    for (const event of ["mouseenter", "focus"]) target.addEventListener(event, show);
    for (const event of ["mouseleave", "blur"]) target.addEventListener(event, hide);
    target.addEventListener("keydown", (event) => {
      if ((event as KeyboardEvent).key === "Escape") this.hide(target);
    });
  }

  // Call after new data: the visible content is recreated.
  refresh(): void {
    if (this.target !== undefined && this.content !== undefined) {
      if (this.target.isConnected) {
        this.show(this.target, this.content);
      } else {
        this.hide(this.target);
      }
    }
  }

  private show(target: Element, content: () => Node[]): void {
    const children = content();
    this.target = target;
    this.content = content;
    this.element.hidden = children.length === 0;
    this.element.replaceChildren(...children);
    const place = target.getBoundingClientRect();
    const box = this.element.getBoundingClientRect();
    const below = place.bottom + MARGIN + box.height <= window.innerHeight;
    const left = Math.max(MARGIN, Math.min(place.left, document.documentElement.clientWidth - box.width - MARGIN));
    this.element.style.left = `${left}px`;
    this.element.style.top = `${below ? place.bottom + MARGIN / 2 : Math.max(0, place.top - box.height - MARGIN / 2)}px`;
  }

  private hide(target: Element): void {
    if (this.target === target) {
      this.target = undefined;
      this.content = undefined;
      this.element.hidden = true;
    }
  }
}
