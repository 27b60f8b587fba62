// The page's state is its address: #target/family/tab, for sources also /file:line.
const TABS = [
  ["summary", "Summary", summaryPanel, () => null], ["paths", "Paths", pathsPanel, (cell) => cell.paths.length],
  ["proofs", "Proofs", proofsPanel, (cell) => cell.proofs.length], ["resources", "Resources", resourcesPanel, (cell) => cell.resources.length],
  ["executed", "Executed", executedPanel, (cell) => cell.executed.reduce((sum, row) => sum + row.cases, 0)],
  ["benchmark", "Benchmark", benchmarks, (cell) => cell.bench.reduce((sum, bench) => sum + bench.rows.length, 0)],
  ["source", "Source", null, (cell) => cell.sources.length],
];
const cellsById = new Map(DATA.cells.map((cell) => [`${cell.target}/${cell.family}`, cell]));
const buttons = [...document.querySelectorAll(".cell")];
let shown = null;

function drawCell(cell) {
  const family = DATA.families.find((one) => one.name === cell.family), target = DATA.targets.find((one) => one.name === cell.target);
  const id = `${cell.target}/${cell.family}`;
  const tabs = TABS.map(([name, title, , count]) => h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": "false", tabindex: "-1", onclick: () => go(`${id}/${name}`) },
    title, count(cell) ? h("span", { class: "n" }, number(count(cell))) : null));
  const panels = TABS.map(([name, title]) => h("div", { class: "panel", role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, "data-title": title, hidden: true }));
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "What to see of the cell" }, tabs);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.click();
    next.focus();
  });
  $("detail").replaceChildren(
    h("header", {}, h("h2", {}, h("span", {}, cell.family), h("span", { class: "on" }, `on ${cell.target}`), h("span", { class: "verdict tag" }, icon(cell.state), cell.headline),
      h("button", { type: "button", "aria-pressed": String(document.body.classList.contains("wide")), onclick: wide }, "Wide")), h("p", {}, family.summary)), list, ...panels);
  shown = { id, cell, family, target, drawn: new Set(), source: null };
}

function drawTab(name) {
  const panel = $(`panel-${name}`), make = TABS.find((tab) => tab[0] === name)[2];
  if (!shown.drawn.has(name)) {
    shown.drawn.add(name);
    if (name !== "source") panel.replaceChildren(...[make(shown.cell, shown.family, shown.target)].flat(Infinity).filter(Boolean));
    else if (!shown.cell.sources.length) panel.replaceChildren(empty("Nothing is generated."));
    else {
      const { id } = shown;
      const remember = (file, line) => {
        // A source that is still loading when the reader goes elsewhere must not take the address back.
        if (decodeURIComponent(location.hash).startsWith(`#${id}/source`)) history.replaceState(null, "", `#${id}/source/${file}:${line}`);
      };
      shown.source = new SourceView(shown.cell, shown.family, remember);
      panel.replaceChildren(shown.source.element);
    }
  }
  for (const [other] of TABS) {
    const chosen = other === name;
    $(`panel-${other}`).hidden = !chosen;
    $(`tab-${other}`).setAttribute("aria-selected", String(chosen));
    $(`tab-${other}`).tabIndex = chosen ? 0 : -1;
  }
}

async function openSource(place) {
  const view = shown.source;
  if (!view) return;
  const [file, line] = (place || "").split(":");
  if (file === "spec") {
    await view.open(view.file.name);
    await view.openSpec(Number(line) || 1);
  } else await view.open(file, Number(line) || 0);
}

function go(address) {
  if (location.hash.slice(1) === address) route();
  else location.hash = address;
}

function route() {
  const [target, family, tab = "summary", place] = decodeURIComponent(location.hash.slice(1)).split("/");
  const id = `${target}/${family}`;
  if (!cellsById.has(id)) return;
  if (!shown || shown.id !== id) drawCell(cellsById.get(id));
  drawTab(TABS.some(([name]) => name === tab) ? tab : "summary");
  if (tab === "source") openSource(place);
  for (const button of buttons) {
    const chosen = button.dataset.cell === id;
    button.setAttribute("aria-pressed", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }
  document.title = `${family} on ${target} - dsv4gen report`;
}

function startMatrix() {
  const columns = DATA.families.length;
  buttons.forEach((button, place) => {
    button.tabIndex = place ? -1 : 0;
    button.addEventListener("click", () => { go(button.dataset.cell); $("detail").focus({ preventScroll: window.innerWidth > 1240 }); });
    button.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -(place % columns), End: columns - 1 - (place % columns) };
      const next = buttons[place + steps[event.key]];
      if (!(event.key in steps) || !next) return;
      event.preventDefault();
      button.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  });
}

function wide() {
  const on = document.body.classList.toggle("wide");
  $("detail").querySelector("h2 button")?.setAttribute("aria-pressed", String(on));
}

function startTheme() {
  const button = $("theme"), names = ["auto", "light", "dark"];
  const store = { get: () => { try { return localStorage.getItem("dsv4gen-theme"); } catch { return null; } }, set: (value) => { try { localStorage.setItem("dsv4gen-theme", value); } catch { /* a page without storage forgets it */ } } };
  const apply = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = name[0].toUpperCase() + name.slice(1);
    button.setAttribute("aria-label", `Colours: ${name === "auto" ? "as the system" : name}`);
    button.dataset.name = name;
  };
  button.addEventListener("click", () => { const next = names[(names.indexOf(button.dataset.name) + 1) % 3]; apply(next); store.set(next); });
  apply(names.includes(store.get()) ? store.get() : "auto");
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("search").focus(); }
  if (event.key === "w" && shown) wide();
  if (event.key === "Escape" && shown) {
    if (document.body.classList.contains("wide")) wide();
    buttons.find((button) => button.dataset.cell === shown.id).focus();
  }
});
window.addEventListener("hashchange", route);
window.addEventListener("beforeprint", () => { if (shown) { const open = TABS.find(([name]) => !$(`panel-${name}`).hidden)[0]; for (const [name] of TABS) if (name !== "source") drawTab(name); drawTab(open); } });
$("print").addEventListener("click", () => window.print());
startTheme();
startMatrix();
startSearch();
route();
