// Tables: columns are {head, kind, cell}; kind is num, code, sym or nothing. Rows may be marked bad or warn.
function table(caption, columns, rows, mark = () => "") {
  const cells = (row) => columns.map((column) => h("td", { class: column.kind || null }, column.cell(row)));
  return h("div", { class: "rows", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "data" },
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.kind === "num" ? "num" : null }, column.head)))),
      h("tbody", {}, rows.map((row) => h("tr", { class: mark(row) || null }, cells(row))))));
}
const column = (head, kind, cell) => ({ head, kind, cell });

function bar(value, limit) {
  if (!(limit > 0) || !(value >= 0)) return null;
  const part = Math.min(100, (100 * value) / limit);
  return h("span", { class: "bar", role: "img", "aria-label": `${part.toFixed(0)} percent of the limit` }, h("i", { style: `width:${part}%` }));
}

function filtered(label, rows, text, draw) {
  const shown = h("span", { class: "n" });
  const place = h("div", {});
  const input = h("input", { type: "search", "aria-label": label, placeholder: label });
  const update = () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => wanted.every((word) => text(row).toLowerCase().includes(word)));
    shown.textContent = `${number(found.length)} of ${number(rows.length)}`;
    place.replaceChildren(draw(found));
  };
  input.addEventListener("input", update);
  update();
  return [h("div", { class: "filter" }, input, shown), place];
}
