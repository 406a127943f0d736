// A line chart of the last minutes, drawn as SVG.

import { h, replace, svg } from "./dom.js";

const WIDTH = 600, HEIGHT = 100;

export class Chart {
  /** `names` are the lines; `show` writes a value. */
  constructor(title, names, show, points = 90) {
    Object.assign(this, { names, show, points, values: names.map(() => []) });
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.keys = h("div", { class: "keys" });
    this.top = h("small", {});
    this.title = title;
    this.element = h("section", { class: "chart" }, h("h2", {}, title, this.top), this.picture, this.keys);
    this.draw();
  }

  add(values) {
    values.forEach((value, i) => {
      this.values[i].push(value);
      if (this.values[i].length > this.points) this.values[i].shift();
    });
    this.draw();
  }

  draw() {
    const most = Math.max(...this.values.flat().filter(Number.isFinite), 0);
    const scale = nice(most);
    const x = (i, n) => WIDTH - ((n - 1 - i) * WIDTH) / (this.points - 1);
    const y = (v) => HEIGHT - (Math.min(v, scale) / scale) * HEIGHT;
    const path = (values) => values.map((v, i) => `${i ? "L" : "M"}${x(i, values.length).toFixed(1)} ${y(v || 0).toFixed(1)}`).join("");
    const grid = [0, 0.5, 1].map((part) => svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part }));
    const lines = this.values.map((values, i) => values.length < 2 ? null : [
      i === 0 ? svg("path", { class: `area f${i}`, d: `${path(values)}L${WIDTH} ${HEIGHT}L${x(0, values.length)} ${HEIGHT}Z` }) : null,
      svg("path", { class: `s${i}`, d: path(values) })]);
    replace(this.picture, grid, lines.flat());
    const last = this.values.map((values) => values.at(-1) ?? 0);
    this.picture.setAttribute("aria-label", `${this.title}: ${this.names.map((name, i) => `${name} ${this.show(last[i])}`).join(", ")}`);
    this.top.textContent = most > 0 ? `up to ${this.show(scale)}` : "";
    replace(this.keys, this.names.map((name, i) => h("span", {}, h("span", { class: `dot c${i}` }), `${name} `, h("b", {}, this.show(last[i])))));
  }
}

function nice(value) {
  if (!(value > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * size).find((n) => n >= value);
}
