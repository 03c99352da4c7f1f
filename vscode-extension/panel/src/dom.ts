/**
 * Elements in one expression, and the only module that puts text into them (eslint.config.mjs). Nothing here sets inline styles or markup
 * from text: the page's policy forbids the one, and user code must not reach the other. Hidden characters are shown as escapes.
 */

import { visible } from "./inert";

type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are `false` or missing are left out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled<Kind extends Element>(element: Kind, attributes: Attributes, children: readonly Child[]): Kind {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      set(element, name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(typeof child === "string" ? visible(child) : child);
    }
  }
  return element;
}

/** Sets an attribute: words for people are made visible, what names something stays exact. */
export function set(element: Element, name: string, value: string): void {
  element.setAttribute(name, name === "title" || name === "aria-label" ? visible(value) : value);
}

/** Shows this text alone. */
export function write(element: Element, text: string): void {
  element.textContent = visible(text);
}

/** A listener, and nothing else. */
export function on<Name extends keyof HTMLElementEventMap>(
  element: Element,
  name: Name,
  heard: (event: HTMLElementEventMap[Name]) => void,
): void {
  element.addEventListener(name, heard as EventListener);
}

/** The text that an element has. */
export function textOf(element: Element): string {
  return element.textContent;
}
