/** Which part of the drawing is seen, and how large. */

import type { Point, Rect } from "./sizes";

const CLOSEST = 3;
const FARTHEST = 0.03;
/** Smaller than that there is no room for labels: a first view is rather a part than all of it. */
const READABLE = 0.3;
/** A drawing fills at least this part of the view. */
const SPARE = 0.9;
/** Pixels of a drawing that cannot be moved out of view. */
const INSIDE = 60;

export class Camera {
  /** Where the drawing begins in the view. */
  x = 0;
  y = 0;
  scale = 1;
  /** Farther away there is nothing more to see. */
  private least = FARTHEST;
  width = 1;
  height = 1;

  /** What is seen of the drawing, and a margin around it. */
  seen(margin = 0): Rect {
    return {
      x: (-this.x - margin) / this.scale,
      y: (-this.y - margin) / this.scale,
      width: (this.width + 2 * margin) / this.scale,
      height: (this.height + 2 * margin) / this.scale,
    };
  }

  pan(x: number, y: number): void {
    this.x += x;
    this.y += y;
  }

  /** Has some of a drawing of this size in view. */
  hold(width: number, height: number): void {
    this.least = Math.max(FARTHEST, Math.min(1, (SPARE * this.width) / width, (SPARE * this.height) / height));
    const held = (at: number, drawn: number, seen: number): number => Math.min(seen - INSIDE, Math.max(INSIDE - drawn * this.scale, at));
    this.x = held(this.x, width, this.width);
    this.y = held(this.y, height, this.height);
  }

  /** Zooms around a point of the screen, the middle by default. */
  zoom(factor: number, at: Point = { x: this.width / 2, y: this.height / 2 }): void {
    const scale = Math.min(CLOSEST, Math.max(this.least, this.scale * factor));
    this.x = at.x - ((at.x - this.x) * scale) / this.scale;
    this.y = at.y - ((at.y - this.y) * scale) / this.scale;
    this.scale = scale;
  }

  /** All of a drawing. */
  fit(width: number, height: number): void {
    const scale = Math.min(1.25, this.width / width, this.height / height);
    this.place(width, height, Math.max(FARTHEST, scale));
  }

  /** All of it where it can be read, else its beginning. */
  begin(width: number, height: number): void {
    const scale = Math.min(1.1, this.width / width, this.height / height);
    this.place(width, height, Math.max(READABLE, scale));
  }

  center(rect: Rect): void {
    this.x = this.width / 2 - (rect.x + rect.width / 2) * this.scale;
    this.y = this.height / 2 - (rect.y + rect.height / 2) * this.scale;
  }

  private place(width: number, height: number, scale: number): void {
    this.scale = scale;
    this.x = (this.width - width * scale) / 2;
    this.y = Math.max(0, (this.height - height * scale) / 2);
  }
}

/** Whether two rectangles overlap. */
export function overlap(one: Rect, other: Rect): boolean {
  return (
    one.x <= other.x + other.width &&
    other.x <= one.x + one.width &&
    one.y <= other.y + other.height &&
    other.y <= one.y + one.height
  );
}

/** Whether a part that is drawn holds what is seen, and not so much more that it costs too much. */
export function suffices(drawn: Rect, seen: Rect): boolean {
  return (
    drawn.x <= seen.x &&
    drawn.y <= seen.y &&
    seen.x + seen.width <= drawn.x + drawn.width &&
    seen.y + seen.height <= drawn.y + drawn.height &&
    drawn.width < 4 * seen.width
  );
}
