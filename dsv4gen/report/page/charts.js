// Log-log line charts. Ours, the floor and peers differ in stroke and marker, not in colour alone.
const PEER_MARKS = ["square", "triangle", "diamond", "cross", "ring"];
const DASHES = ["6 3", "2 2", "8 3 2 3", "4 4", "1 3"];

function look(series, peers) {
  if (series.kind === "ours") return { colour: "var(--accent)", width: 2.2, dash: null, mark: "dot" };
  if (series.kind === "floor") return { colour: "var(--soft)", width: 1.2, dash: "1 3", mark: null };
  const place = Math.max(0, peers.indexOf(series.name)) % 5;
  return { colour: `var(--peer${place + 1})`, width: 1.4, dash: DASHES[place], mark: PEER_MARKS[place] };
}

function marker(kind, x, y, colour) {
  const paths = {
    square: `M${x - 3} ${y - 3}h6v6h-6z`, triangle: `M${x} ${y - 3.6}l3.6 6.6h-7.2z`, diamond: `M${x} ${y - 4}l4 4-4 4-4-4z`,
    cross: `M${x - 3} ${y - 3}l6 6m0-6l-6 6`,
  };
  if (kind === "dot") return svg("circle", { cx: x, cy: y, r: 3.2, fill: colour });
  if (kind === "ring") return svg("circle", { cx: x, cy: y, r: 3, fill: "none", stroke: colour, "stroke-width": 1.5 });
  if (!kind) return null;
  return svg("path", { d: paths[kind], fill: kind === "cross" ? "none" : colour, stroke: kind === "cross" ? colour : null, "stroke-width": 1.6 });
}

function ticks(low, high) {
  const decades = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    const steps = Math.log10(high / low) < 1.6 ? [1, 2, 5] : [1];
    for (const step of steps) decades.push(step * 10 ** power);
  }
  const inside = decades.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  return inside.length > 1 ? inside : [low, high];
}
const short = (value) => {
  if (value >= 1048576 && value % 1048576 === 0) return `${value / 1048576}Mi`;
  if (value >= 1024 && value % 1024 === 0) return `${value / 1024}Ki`;
  return value >= 10000 ? `${value / 1000}k` : `${+Number(value).toPrecision(3)}`;
};

function chart(data, peers) {
  const W = 260, H = 175, left = 36, right = 18, top = 10, bottom = 30;
  const xs = data.series.flatMap((series) => series.points.map((point) => point[0]));
  const ys = data.series.flatMap((series) => series.points.map((point) => point[1])).filter((value) => value > 0);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  // Floors of tiny calls are far below anything a launch can reach; two decades below our best time is enough.
  const best = Math.min(...data.series.filter((series) => series.kind !== "floor").flatMap((series) => series.points.map((point) => point[1])));
  const y0 = Math.max(Math.min(...ys), best / 100) * 0.8, y1 = Math.max(...ys) * 1.25;
  const X = (value) => left + ((W - left - right) * Math.log(value / x0)) / Math.log(x1 / x0 || 2);
  const Y = (value) => H - bottom - ((H - top - bottom) * Math.log(Math.max(value, y0) / y0)) / Math.log(y1 / y0);
  const xTicks = [...new Set(data.series[0].points.map((point) => point[0]))];
  const every = Math.ceil(xTicks.length / 6);
  const drawing = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${data.title}: microseconds over ${data.axis}; the table below has the numbers` },
    ticks(y0, y1).map((value) => [svg("line", { class: "grid", x1: left, x2: W - right, y1: Y(value), y2: Y(value) }), svg("text", { x: left - 5, y: Y(value) + 3, "text-anchor": "end" }, short(value))]),
    xTicks.filter((_, place) => place % every === 0).map((value) => svg("text", { x: X(value), y: H - bottom + 13, "text-anchor": "middle" }, short(value))),
    svg("line", { class: "axis", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    svg("text", { x: (left + W - right) / 2, y: H - 4, "text-anchor": "middle" }, data.axis),
    [...data.series].sort((a, b) => (a.kind === "ours") - (b.kind === "ours")).map((series) => {
      const { colour, width, dash, mark } = look(series, peers);
      const points = series.points.filter((point) => point[1] > 0).map(([x, y]) => [X(x), Y(y)]);
      return svg("g", {}, svg("title", {}, series.name),
        svg("path", { d: points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""), fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dash, "stroke-linejoin": "round" }),
        points.map(([x, y]) => marker(mark, x, y, colour)));
    }));
  return h("figure", { class: "chart" }, h("figcaption", {}, data.title, h("span", {}, " µs")), drawing);
}

function legend(series, peers) {
  return h("div", { class: "key" }, series.map((one) => {
    const { colour, width, dash, mark } = look(one, peers);
    return h("span", {}, svg("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" },
      svg("path", { d: "M1 6H29", stroke: colour, "stroke-width": width, "stroke-dasharray": dash }), marker(mark, 15, 6, colour)), one.name);
  }));
}

function benchmarks(cell) {
  const stage = cell.stages.find((one) => one.name === "measured");
  if (!cell.bench.length) return [empty(`${stage.text}: ${stage.reasons.join("; ")}`)];
  return cell.bench.flatMap((bench) => {
    const peers = [...new Set(bench.rows.flatMap((row) => Object.keys(row.peers)))];
    const names = [...new Set(bench.charts.flatMap((one) => one.series.map((series) => series.name)))];
    const kinds = names.map((name) => bench.charts.flatMap((one) => one.series).find((series) => series.name === name));
    const value = (row, name) => ({ ...row.options, ...row.shape })[name];
    const axes = [...new Set(bench.rows.flatMap((row) => Object.keys({ ...row.options, ...row.shape })))];
    const varying = axes.filter((name) => new Set(bench.rows.map((row) => value(row, name))).size > 1);
    const fixed = axes.filter((name) => !varying.includes(name)).map((name) => `${name}=${value(bench.rows[0], name)}`).join(" ");
    const us = (time) => (time ? time.us.toFixed(2) : "");
    const columns = [
      column("list", null, (row) => row.group), column("op", null, (row) => row.op),
      ...varying.map((name) => column(name, typeof value(bench.rows[0], name) === "string" ? null : "num", (row) => value(row, name) ?? "")),
      column("path", null, (row) => row.path || row.problem),
      ...[...new Set(bench.rows.flatMap((row) => Object.keys(row.times)))].map((way) => column(`${way} µs`, "num", (row) => us(row.times[way]))),
      column("± %", "num", (row) => (row.times[bench.way] ? (100 * row.times[bench.way].spread).toFixed(1) : "")),
      column("floor µs", "num", (row) => row.floor_us.toFixed(2)),
      column("× floor", "num", (row) => (row.times[bench.way] && row.floor_us > 0 ? (row.times[bench.way].us / row.floor_us).toFixed(2) : "")),
      ...peers.flatMap((peer) => [column(`${peer} µs`, "num", (row) => us(row.peers[peer])),
        column("ours / it", "num", (row) => (row.peers[peer] && row.times[bench.way] ? (row.times[bench.way].us / row.peers[peer].us).toFixed(2) : ""))]),
    ];
    const problems = [...new Set(bench.rows.flatMap((row) => Object.keys(row.peer_problems)))].map((name) => {
      const all = bench.rows.map((row) => row.peer_problems[name]).filter(Boolean);
      return `${name}: ${plural(all.length, "shape")}${all.length > 1 ? ", the first" : ""}: ${all[0]}`;
    });
    return [
      h("p", { class: "note small" }, `${bench.date}, ${Object.entries(bench.machine).map(([name, text]) => (name === "device" ? text : `${name} ${text}`)).join(", ")}; ${bench.file}. Charts show ${bench.way} times.`),
      legend(kinds, peers), h("div", { class: "charts" }, bench.charts.map((one) => chart(one, peers))),
      h("h3", {}, "Every shape"), fixed ? h("p", { class: "note" }, `All with ${fixed}.`) : null, table("Times of every shape", columns, bench.rows, (row) => (row.problem ? "bad" : "")),
      problems.length ? [h("h3", {}, "Peers without times"), h("ul", { class: "plain" }, problems.map((text) => h("li", {}, text)))] : null,
    ];
  });
}
