// Generated file <-> template <-> spec. The map gives the template line of every generated line; a spec key belongs to
// a generated line whose words name it.
const PACKED = JSON.parse($("texts").textContent);
const unpacked = new Map();

async function textOf(name) {
  if (!unpacked.has(name)) {
    const packed = PACKED[name];
    if (packed === undefined) return "";
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(name, await new Response(stream).text());
  }
  return unpacked.get(name);
}

function originOf(file, line) {
  let run = null;
  for (const candidate of file.runs) {
    if (candidate[0] > line) break;
    run = candidate;
  }
  return run && { template: file.templates[run[1]], line: run[2] + line - run[0] };
}

function linesFrom(file, origin, count) {
  const found = [];
  for (let line = 1; line <= count; line += 1) {
    const other = originOf(file, line);
    if (other && other.template === origin.template && other.line === origin.line) found.push(line);
  }
  return found;
}

const snake = (word) => word.replace(/^k(?=[A-Z])/, "").replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();

function specLines(family, text) {
  const named = new Map();
  for (const [key, line] of Object.entries(family.spec_lines)) {
    const last = key.split(".").pop();
    if (!last.endsWith("]") && last.length > 1 && !named.has(last)) named.set(last, line);
  }
  const found = new Set();
  for (const word of text.replace(/\/\/.*|#.*/, "").match(/[A-Za-z_]\w*/g) || []) {
    const line = named.get(snake(word)) || named.get(word);
    if (line) found.add(line);
  }
  return [...found].sort((a, b) => a - b);
}

class SourceView {
  constructor(cell, family, remember) {
    this.cell = cell;
    this.family = family;
    this.remember = remember;
    this.file = cell.sources[0];
    this.generated = new Listing("Generated file; choose a line", (line) => this.follow(line));
    this.template = new Listing("Template");
    this.spec = new Listing("Spec");
    this.names = { generated: h("b", {}), template: h("b", {}), spec: h("b", {}) };
    this.places = { generated: h("span", { class: "where" }), template: h("span", { class: "where" }), spec: h("span", { class: "where" }) };
    this.select = h("select", { "aria-label": "Generated file", onchange: () => this.open(this.select.value) },
      cell.sources.map((file) => h("option", { value: file.name }, file.name)));
    this.element = h("div", {},
      h("div", { class: "places" }, this.select, h("span", { class: "n" }, "Choose a line to see the template line it comes from, the other lines of that template line, and the spec keys it names.")),
      h("div", { class: "panes" }, this.pane("generated", ""), h("div", { class: "pair" }, this.pane("template", "low"), this.pane("spec", "low"))));
  }

  pane(kind, more) {
    return h("div", { class: `pane ${more}` }, h("div", {}, this.names[kind], this.places[kind]), this[kind].element);
  }

  async open(name, line = 0) {
    this.file = this.cell.sources.find((file) => file.name === name) || this.cell.sources[0];
    this.select.value = this.file.name;
    this.generated.show(this.file.text, await textOf(this.file.text));
    this.names.generated.textContent = this.file.text;
    this.places.generated.textContent = plural(this.generated.lines.length, "line");
    await this.openSpec(0);
    this.generated.take(line || this.firstOfInterest());
  }

  // The first line of the kernel body that is code and names something of the spec.
  firstOfInterest() {
    const lines = this.generated.lines.map((line) => line.lastChild.textContent);
    const body = Math.max(0, lines.findIndex((line) => /kernel body|@triton\.jit/.test(line)));
    const found = lines.findIndex((line, place) => place > body && !/^\s*(\/\/|#|$)/.test(line) && specLines(this.family, line).length);
    return Math.max(1, found + 1);
  }

  async openSpec(at) {
    this.spec.show(this.family.spec, await textOf(this.family.spec));
    this.names.spec.textContent = this.family.spec;
    this.spec.mark(at || []);
    this.places.spec.textContent = at ? `line ${[].concat(at).join(", ")}` : "";
  }

  async follow(line) {
    this.remember(this.file.name, line);
    const origin = originOf(this.file, line);
    const text = this.generated.lines[line - 1].lastChild.textContent;
    const keys = specLines(this.family, text);
    await this.openSpec(keys.length ? keys : 0);
    if (!keys.length) this.places.spec.textContent = "no key is named on this line";
    if (!origin) {
      this.names.template.textContent = "no template";
      this.template.show("none", "");
      return;
    }
    this.template.show(origin.template, await textOf(origin.template));
    this.names.template.textContent = origin.template;
    this.places.template.textContent = `line ${origin.line}`;
    this.template.mark(origin.line);
    const same = linesFrom(this.file, origin, this.generated.lines.length);
    this.generated.mark([], same.length > 1 ? same : []);
    this.places.generated.textContent = `line ${line} of ${number(this.generated.lines.length)}${same.length > 1 ? `, ${same.length} lines from this template line` : ""}`;
  }
}
