// Elements without any parsing of text as HTML: everything shown is text from the specs, and text it stays.
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const STATE_WORDS = { yes: "done", part: "in part", no: "not done", never: "not here", stale: "out of date", failed: "failed" };

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const icon = (state) => svg("svg", { class: `icon ${state}`, "aria-hidden": "true" }, svg("use", { href: `#i-${state}` }));
const tag = (state, words) => h("span", { class: "tag" }, icon(state), words);
const number = (value) => Number(value).toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const words = (mapping) => Object.entries(mapping).map(([name, value]) => `${name}=${value}`).join(" ");
const empty = (text) => h("p", { class: "empty" }, text);
