// One panel per tab, each drawn from a cell.
const stageIcon = (stage) => [icon(stage.state), h("span", { class: "hidden" }, STATE_WORDS[stage.state])];

function summaryPanel(cell, family, target) {
  const facts = [["family", family.summary], ["language", { hip_cuda: "HIP/CUDA C++", triton: "Triton" }[family.language] || ""],
    ["target", `${target.summary}${target.also.length ? `; its source also serves ${target.also.join(", ")}` : ""}`], ["best check here", { device: "run on a device", emulated: "machine code emulated on a CPU", compiled: "compiled, source executed on host oracles" }[target.evidence] || ""]];
  return [
    h("ul", { class: "stages" }, cell.stages.map((stage) => h("li", {}, h("span", {}, stageIcon(stage)), h("span", { class: "what" }, stage.name),
      h("div", {}, h("span", { class: `text ${stage.state}` }, stage.text), h("ul", {}, stage.reasons.map((reason) => h("li", {}, reason))))))),
    h("h3", {}, "About"), h("dl", { class: "about" }, facts.filter((row) => row[1]).map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
  ];
}

function pathsPanel(cell, family) {
  const specLink = (key) => {
    if (key.startsWith("tuning.")) return `tuned: specs/tuning/${cell.target}/${cell.family}.yaml, ${key.slice(7)}`;
    const line = nearestLine(family, key);
    return h("a", { href: `#${cell.target}/${cell.family}/source/spec:${line}`, title: key }, `${family.spec.split("/").pop()}:${line}`);
  };
  const tiles = cell.tiles.filter((tile) => !tile.refused), refused = cell.tiles.filter((tile) => tile.refused);
  return [
    h("h3", {}, "Launch paths, in the order in which they are tried"),
    table("Launch paths", [
      column("op", null, (path) => path.op), column("path", "sym", (path) => path.name),
      column("on this target", null, (path) => (path.rejected ? tag("failed", "rejected") : tag("yes", path.variant ? `kept (variant ${path.variant})` : "kept"))),
      column("right where", "code", (path) => path.domain), column("wanted where", "code", (path) => path.prefer),
      column("launches, or why not", null, (path) => path.rejected || path.launches.join(", then ")), column("spec", null, (path) => specLink(path.key))],
      cell.paths, (path) => (path.rejected ? "warn" : "")),
    h("h3", {}, "What the listed shapes take on a usual device"),
    cell.decisions.length ? table("Decisions", [column("op", null, (one) => one.op), column("shape", "code", (one) => one.shape), column("path", "sym", (one) => one.path), column("because", "code", (one) => one.because), column("launches", "code", (one) => one.symbols.join(", "))], cell.decisions) : empty("The spec lists no shapes."),
    h("h3", {}, "Tiles in use"),
    table("Tiles", [column("kernel", "sym", (tile) => tile.kernel), column("first that holds", "code", (tile) => tile.when), column("tile", "code", (tile) => tile.tile), column("from", null, (tile) => specLink(tile.origin))], tiles),
    refused.length ? [h("h3", {}, "Refused tiles"), table("Refused tiles", [column("kernel", "sym", (tile) => tile.kernel), column("verdict", null, () => tag("failed", "does not fit")), column("tile", "code", (tile) => tile.tile), column("why", null, (tile) => tile.refused)], refused, () => "warn")] : null,
  ];
}

function nearestLine(family, key) {
  let place = key;
  while (place && !(place in family.spec_lines)) place = place.replace(/(\.[^.[]+|\[\d+\])$|^[^.[]+$/, "");
  return family.spec_lines[place] || 1;
}

// What is wrong with a stage, above its table.
function trouble(stage) {
  if (!["failed", "stale"].includes(stage.state)) return [];
  return [h("h3", {}, tag(stage.state, stage.text)), h("ul", { class: "trouble" }, stage.reasons.map((reason) => h("li", {}, reason)))];
}

function proofsPanel(cell) {
  const stage = cell.stages.find((one) => one.name === "proven");
  const failed = trouble(stage);
  if (!cell.proofs.length) return [...failed, empty("Nothing is proven.")];
  const value = (text) => Number(/^-?\d+$/.test(text) ? text : NaN);
  const shown = (text) => (/^-?\d{4,}$/.test(text) ? number(text) : text);
  return [...failed, filtered("Filter proofs", cell.proofs, (row) => Object.values(row).join(" "), (rows) => table("Proofs", [
    column("proven for", "code", (row) => row.subject), column("what", null, (row) => row.name), column("formula", "code", (row) => row.formula),
    column("value", "num", (row) => shown(row.value)), column("limit", "num", (row) => [bar(value(row.value), value(row.limit.split(" ")[0])), shown(row.limit)]),
    column("slack", "num", (row) => shown(row.slack)), column("verdict", null, (row) => tag(row.verdict === "too large" ? "failed" : "yes", row.verdict))], rows))];
}

function resourcesPanel(cell) {
  const stage = cell.stages.find((one) => one.name === "compiled");
  const wrong = trouble(stage);
  if (!cell.resources.length) return wrong.length ? wrong : [empty(`${stage.text}: ${stage.reasons.join("; ")}`)];
  const devices = new Set(cell.resources.map((row) => row.device));
  return [...wrong, filtered("Filter kernels", cell.resources, (row) => `${row.device} ${row.symbol} ${row.compiler} ${row.spills ? "spills" : ""}`, (rows) => table("Resources", [
    ...(devices.size > 1 ? [column("device", null, (row) => row.device)] : []), column("kernel", "wide", (row) => row.symbol), column("compiler", null, (row) => row.compiler),
    column("registers", "num", (row) => row.registers), column("acc", "num", (row) => row.accumulators), column("scalar", "num", (row) => row.scalars),
    column("spills", "num", (row) => (row.spills ? tag("failed", String(row.spills)) : "0")), column("scratch B", "num", (row) => number(row.scratch)),
    column("shared B", "num", (row) => [bar(row.shared, row.shared_limit), number(row.shared)]), column("limit B", "num", (row) => number(row.shared_limit)),
    column("blocks/unit", "num", (row) => row.blocks_per_unit)], rows, (row) => (row.spills ? "warn" : "")))];
}

function executedPanel(cell) {
  const stage = cell.stages.find((one) => one.name === "executed");
  const unreached = cell.gaps.filter((gap) => !gap.reason), impossible = cell.gaps.filter((gap) => gap.reason);
  const wrong = unreached.length && stage.text.endsWith("not executed") ? [] : trouble(stage);
  if (!cell.executed.length && !cell.gaps.length) return wrong.length ? wrong : [empty(`${stage.text}: ${stage.reasons.join("; ")}`)];
  const counted = [...new Set(cell.counters.flatMap((row) => Object.keys(row.counted.counters)))].filter((name) => cell.counters.some((row) => row.counted.counters[name]));
  return [...wrong,
    unreached.length ? [h("h3", {}, "What no case reached"), table("Not executed", [column("state", null, () => tag("failed", "not executed")), column("kernel", "sym", (gap) => gap.symbol), column("row path", "sym", (gap) => gap.row_path || "all of it"), column("on", null, (gap) => gap.oracle || "any oracle")], unreached, () => "bad")] : null,
    impossible.length ? [h("h3", {}, "What could not be executed"), table("Could not be executed", [column("kernel", "wide", (gap) => gap.symbol), column("on", null, (gap) => gap.oracle), column("because", "wide", (gap) => gap.reason)], impossible)] : null,
    cell.executed.length ? [h("h3", {}, "Executed and equal to the reference"), executedTables(cell)] : null,
    counted.length ? [h("h3", {}, "Counters of the longest emulated launch of each kernel"), h("p", { class: "note" }, "Executed wave instructions and events. Counts, never time."),
      table("Counters", [column("kernel", cell.counters.some((row) => row.symbol.length > 40) ? "wide" : "sym", (row) => row.symbol), column("grid × block", "sym", (row) => `${row.counted.grid.join("×")} × ${row.counted.block}`), column("instructions", "num", (row) => number(row.counted.instructions)),
        ...counted.map((name) => column(name.replaceAll("_", " "), "num", (row) => number(row.counted.counters[name] || 0))), column("case", "wide", (row) => row.counted.case)], cell.counters)] : null,
  ];
}

// One table per kind of name: oracles of source name ops where those of machine code name kernels.
function executedTables(cell) {
  const groups = [];
  for (const row of cell.executed) {
    const group = groups.find((one) => one.oracles.has(row.oracle) || one.symbols.has(row.symbol)) || groups[groups.push({ oracles: new Set(), symbols: new Set() }) - 1];
    group.oracles.add(row.oracle);
    group.symbols.add(row.symbol);
  }
  return groups.map(({ oracles, symbols }) => executedTable(cell, [...oracles], [...symbols]));
}

// One row per kernel, one column of cases per oracle; row paths by oracle only where the oracles differ.
function executedTable(cell, oracles, symbols) {
  const of = (symbol, oracle) => cell.executed.find((row) => row.symbol === symbol && row.oracle === oracle);
  const taken = (symbol) => {
    const rows = oracles.map((oracle) => of(symbol, oracle)).filter((row) => row && row.cases);
    const same = new Set(rows.map((row) => row.row_paths.join(" "))).size < 2;
    return same ? (rows[0] ? rows[0].row_paths.join(" ") : "") : rows.map((row) => `${row.oracle}: ${row.row_paths.join(" ")}`).join("; ");
  };
  const cases = (row) => (row && row.cases ? number(row.cases) : "none");
  const columns = [column("kernel or op", symbols.some((symbol) => symbol.length > 40) ? "wide" : "sym", (symbol) => symbol), ...oracles.map((oracle) => column(`${oracle} cases`, "num", (symbol) => cases(of(symbol, oracle))))];
  if (symbols.some(taken)) columns.push(column("row paths taken", "code", taken));
  return table(`Executed on ${oracles.join(" and ")}`, columns, symbols, (symbol) => (oracles.some((oracle) => of(symbol, oracle)?.cases) ? "" : "warn"));
}
