// One index over everything with a name; hits are links to the cell and tab.
function makeIndex() {
  const entries = [];
  for (const cell of DATA.cells) {
    const id = `${cell.target}/${cell.family}`;
    const add = (kind, text, tab) => entries.push({ id, kind, text, tab, low: `${id} ${text}`.toLowerCase() });
    add("cell", cell.headline, "summary");
    for (const stage of cell.stages) for (const reason of stage.reasons) add(stage.name, `${stage.text}: ${reason}`, "summary");
    for (const path of cell.paths) add("path", `${path.op}.${path.name} ${path.rejected ? `rejected: ${path.rejected}` : path.prefer}`, "paths");
    for (const tile of cell.tiles) if (tile.refused) add("refused tile", `${tile.kernel} ${tile.tile}: ${tile.refused}`, "paths");
    for (const row of cell.resources) add("kernel", `${row.symbol} on ${row.device}${row.spills ? `, spills ${row.spills}` : ""}`, "resources");
    for (const gap of cell.gaps) add("not executed", `${gap.symbol} ${gap.row_path} ${gap.reason}`, "executed");
  }
  return entries;
}

function startSearch() {
  const input = $("search"), place = $("hits");
  let index = null;
  const update = () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    index = index || makeIndex();
    const found = wanted.length ? index.filter((entry) => wanted.every((word) => entry.low.includes(word))) : [];
    const cells = new Set(found.map((entry) => entry.id));
    for (const button of document.querySelectorAll(".cell")) button.classList.toggle("hit", cells.has(button.dataset.cell));
    place.hidden = !wanted.length;
    place.replaceChildren(h("p", { role: "status" }, found.length ? `${plural(found.length, "hit")} in ${plural(cells.size, "cell")}${found.length > 40 ? ", first 40" : ""}` : "Nothing has that name."),
      ...found.slice(0, 40).map((entry) => h("a", { href: `#${entry.id}/${entry.tab}` }, h("b", {}, entry.id), h("span", {}, `${entry.kind}: ${entry.text}`))));
  };
  input.addEventListener("input", update);
  place.addEventListener("click", () => { input.value = ""; update(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") place.querySelector("a")?.focus();
    if (event.key === "Escape") { input.value = ""; update(); input.blur(); }
  });
  place.addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!step) return;
    event.preventDefault();
    (document.activeElement[step]?.matches("a") ? document.activeElement[step] : input).focus();
  });
}
