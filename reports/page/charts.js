// Draws the charts of a report page from the result embedded in it. Every <figure data-chart> names a chart and, as a
// JSON pointer, the part of the result that it shows. Colours are CSS variables, so that theme and print follow the page.
"use strict";
(() => {
  const {transforms} = vega_module("vega-dataflow");
  for (const part of ["vega-transforms", "vega-view-transforms", "vega-encode"]) {
    Object.assign(transforms, vega_module(part));
  }
  const {parse} = vega_module("vega-parser");
  const {View} = vega_module("vega-view");
  const {expressionInterpreter} = vega_module("vega-interpreter");

  const result = JSON.parse(document.getElementById("result").textContent);
  const at = (pointer) => pointer.split("/").slice(1).reduce((value, key) => value[key], result);

  const font = "ui-sans-serif, system-ui, sans-serif";
  const config = {
    background: null,
    axis: {
      labelColor: "var(--ink-2)", titleColor: "var(--ink-2)", domainColor: "var(--line-2)", tickColor: "var(--line-2)",
      gridColor: "var(--line)", labelFont: font, titleFont: font, labelFontSize: 11, titleFontSize: 11,
      titleFontWeight: "normal", titlePadding: 8,
    },
    text: {font, fontSize: 11, fill: "var(--ink-2)"},
  };

  const superscript = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};
  const power_of_two = (n) => "2" + [...String(n)].map((c) => superscript[c]).join("");
  /// Signal that axis labels look their exponent up in.
  const powers = (low, high) => {
    const value = {};
    for (let n = low; n <= high; ++n) value[n] = power_of_two(n);
    return {name: "powers", value};
  };
  const frame = (width, height) => ({width, height, config, padding: 4, autosize: {type: "fit", contains: "padding"}});

  const bound_rule = (encode) => ({
    type: "rule", interactive: false,
    encode: {update: {stroke: {value: "var(--bad)"}, strokeWidth: {value: 1.25}, strokeDash: {value: [5, 3]}, ...encode}},
  });

  // Counts of elements by floor(log2(error / bound)); the first bin holds the exact elements, the last one
  // also those of no finite ratio (compare.h).
  const kExactBin = 0, kBinOfOne = 60, kLastBin = 63;
  const label_of = (bin) => (bin === kExactBin ? "exact" : (bin === kLastBin ? "≥ " : "") + power_of_two(bin - kBinOfOne));
  function range_of(bin) {
    if (bin === kExactBin) return "= 0 (exact)";
    return bin === kLastBin ? `${label_of(bin)}, or not finite` : `in [${label_of(bin)}, ${power_of_two(bin - kBinOfOne + 1)})`;
  }
  function histogram(output, width) {
    const counts = output.histogram;
    const used = counts.map((count, bin) => (count > 0 && bin !== kExactBin ? bin : -1)).filter((bin) => bin >= 0);
    const first = Math.min(...used, kBinOfOne - 8), last = Math.max(...used, kBinOfOne);
    const row = (bin) => ({
      bin, label: label_of(bin), count: counts[bin], outside: bin >= kBinOfOne,
      tip: `${counts[bin]} elements, error/bound ${range_of(bin)}`,
    });
    const rows = [row(kExactBin)];
    for (let bin = first; bin <= last; ++bin) rows.push(row(bin));
    return {
      ...frame(width, 200),
      data: [{name: "bins", values: rows}],
      scales: [
        {name: "x", type: "band", domain: {data: "bins", field: "label"}, range: "width", paddingInner: 0.12},
        {name: "y", type: "symlog", domain: [0, Math.max(1, ...counts)], range: "height", nice: false},
      ],
      axes: [
        {orient: "bottom", scale: "x", title: "error / bound, each bar from its label to the next", labelOverlap: true, ticks: false, labelPadding: 5},
        {orient: "left", scale: "y", title: "elements", grid: true, domain: false, ticks: false,
         encode: {labels: {update: {text: {signal: "format(datum.value, '~s')"}}}},
         values: [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]},
      ],
      marks: [
        {type: "rect", from: {data: "bins"}, encode: {update: {
          x: {scale: "x", field: "label"}, width: {scale: "x", band: 1},
          y: {scale: "y", field: "count"}, y2: {scale: "y", value: 0}, cornerRadius: {value: 1.5},
          fill: {signal: "datum.outside ? 'var(--bad)' : datum.bin == 0 ? 'var(--quiet)' : 'var(--accent)'"},
          tooltip: {field: "tip"},
        }}},
        bound_rule({x: {scale: "x", value: power_of_two(0), offset: -1}, y: {value: 0}, y2: {signal: "height"}}),
        {type: "text", interactive: false, encode: {update: {
          x: {scale: "x", value: power_of_two(0), offset: -5}, y: {value: 8}, align: {value: "right"},
          text: {value: "bound"}, fill: {value: "var(--bad)"}}}},
      ],
    };
  }

  // Largest error / bound over the elements that share an index along one axis.
  function field(folded, width) {
    const per = folded.elements_per_point || 1;
    const rows = folded.max_ratio.map((ratio, i) => {
      const place = per > 1 ? `${folded.axis} in [${i * per}, ${(i + 1) * per})` : `${folded.axis} = ${i}`;
      const finite = typeof ratio === "number";
      return {i: i * per, ratio, e: finite && ratio > 0 ? Math.log2(ratio) : null, nonfinite: !finite, outside: finite && ratio > 1,
              tip: `${place}: error/bound ${finite ? ratio.toPrecision(4) : ratio}`};
    });
    const exponents = rows.map((row) => row.e).filter((e) => e !== null);
    const low = Math.floor(Math.min(-4, ...exponents)), high = Math.ceil(Math.max(1, ...exponents) + 0.25);
    const many = rows.length > 160;
    const size = many ? 9 : 26;
    const points = (filter, encode) => ({
      type: "symbol", from: {data: "points"}, encode: {update: {
        x: {scale: "x", field: "i"}, size: {signal: `${filter} ? ${size} : 0`}, tooltip: {field: "tip"}, ...encode}},
    });
    return {
      ...frame(width, 170),
      signals: [powers(low, high)],
      data: [{name: "points", values: rows}],
      scales: [
        {name: "x", type: "linear", domain: [0, Math.max(1, (rows.length - 1) * per)], range: "width", padding: 6},
        {name: "y", type: "linear", domain: [low, high], range: "height"},
      ],
      axes: [
        {orient: "bottom", scale: "x", title: folded.axis, format: "d", tickMinStep: 1, labelFlush: true},
        {orient: "left", scale: "y", title: "error / bound", grid: true, domain: false, ticks: false, tickMinStep: 1, tickCount: 6,
         encode: {labels: {update: {text: {signal: "powers[datum.value]"}}}}},
      ],
      marks: [
        {type: "line", from: {data: "points"}, interactive: false, encode: {update: {
          x: {scale: "x", field: "i"}, y: {scale: "y", field: "e"}, defined: {signal: "datum.e !== null"},
          stroke: {value: "var(--accent)"}, strokeWidth: {value: 1}, strokeOpacity: {value: many ? 0.9 : 0.45}}}},
        bound_rule({y: {scale: "y", value: 0}, x: {value: 0}, x2: {signal: "width"}}),
        points("datum.e !== null && (datum.outside || !" + many + ")", {
          y: {scale: "y", field: "e"}, fill: {signal: "datum.outside ? 'var(--bad)' : 'var(--accent)'"}}),
        points("datum.nonfinite", {y: {value: 4}, shape: {value: "triangle-down"}, fill: {value: "var(--bad)"}}),
      ],
    };
  }

  // How a number is shown in a map: shaded by its logarithm up to 1, and marked where it lies outside.
  const shaded = (value, outside) => {
    const number = typeof value === "number", exponent = number && value > 0 ? Math.log2(value) : null;
    return {
      value, outside: !number || outside, strength: exponent === null ? 0.04 : Math.min(1, Math.max(0.08, 1 + exponent / 10)),
      text: !number ? value : value === 0 ? "0" : value < 1e-3 ? value.toExponential(0) : value.toPrecision(2),
    };
  };

  // A map of rows {column, line, tip, ...shaded}: `columns` across, `lines` down.
  function heat_map(rows, columns, lines, width, line_height) {
    const x = {scale: "x", field: "column"}, y = {scale: "y", field: "line"};
    return {
      ...frame(width, line_height * lines.length + 40),
      data: [{name: "cells", values: rows}],
      scales: [
        {name: "x", type: "band", domain: columns, range: "width", padding: 0.04},
        {name: "y", type: "band", domain: lines, range: "height", padding: 0.08},
      ],
      axes: [
        {orient: "top", scale: "x", domain: false, ticks: false, labelOverlap: true},
        {orient: "left", scale: "y", domain: false, ticks: false, labelPadding: 8},
      ],
      marks: [
        {type: "rect", from: {data: "cells"}, encode: {update: {
          x, width: {scale: "x", band: 1}, y, height: {scale: "y", band: 1},
          fill: {signal: "datum.outside ? 'var(--bad)' : 'var(--accent)'"},
          fillOpacity: {signal: "datum.outside ? 1 : datum.strength"}, cornerRadius: {value: 2}, tooltip: {field: "tip"}}}},
        {type: "text", from: {data: "cells"}, interactive: false, encode: {update: {
          x: {...x, band: 0.5}, y: {...y, band: 0.5}, align: {value: "center"}, baseline: {value: "middle"}, text: {field: "text"},
          fill: {signal: "datum.outside || datum.strength > 0.6 ? 'var(--on-accent)' : 'var(--ink)'"}}}},
      ],
    };
  }

  // Largest tightness per output, dtype and length class against decay profile.
  function tightness(table, width, figure) {
    const rows = table.filter((row) => row.kernel === figure.dataset.kernel && row.cases > 0).map((row) => ({
      column: row.decay, line: [row.output, row.dtype, row.length_class].filter(Boolean).join("  "),
      ...shaded(row.max_tightness, row.max_tightness >= 1),
      tip: `${row.output} ${row.dtype} ${row.length_class}, ${row.decay}: tightness ${row.max_tightness}, error/bound ${row.max_ratio}, ${row.cases} cases` +
        (row.undecided ? `, ${row.undecided} more undecided` : ""),
    }));
    // "T <= 64" before "T <= 1024"; the same columns for every kernel.
    const ordered = (names) => [...new Set(names)].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
    return heat_map(rows, ordered(table.map((row) => row.decay)), ordered(rows.map((row) => row.line)), width, 24);
  }

  // Cells of one output and format, of one kernel or of all.
  const cells_of = (cells, figure) => cells.filter((cell) => cell.output === figure.dataset.output && cell.dtype === figure.dataset.dtype &&
      (!figure.dataset.kernel || cell.kernel === figure.dataset.kernel));
  const palette = ["#4a90c8", "#d9822b", "#45a565", "#a274c2", "#d0605c", "#35a3a3", "#a5815c", "#8a8a8a", "#c95fa3", "#7f9a2f", "#5b6fd1", "#b0475b"];
  const finite = (value) => typeof value === "number" && value > 0;
  // The value of the swept option: a number, or a name whose place is x.
  const x_name = (cell) => (result.logarithmic ? String(cell.x) : result.names[cell.x]);

  // The domain of a logarithmic scale (a linear one for names) after a turn of the wheel at a place, or a drag.
  const scaled = (axis) => (axis === "x" && !result.logarithmic ? "Linear" : "Log");
  const zoomed = (axis) => `zoom${scaled(axis)}(dom_${axis}, invert('${axis}', ${axis}()), pow(1.001, event.deltaY))`;
  const moved = (axis) => {
    const by = axis === "x" ? "(x() - grip.x) / width" : "(grip.y - y()) / height";
    return `grip ? pan${scaled(axis)}(grip.d${axis}, ${by}) : dom_${axis}`;
  };

  // Largest error and bound of every series against the swept option, both axes logarithmic, zoomable.
  function sweep_error(table, width, figure) {
    const cells = cells_of(table, figure), kernels = [...new Set(cells.map((cell) => cell.kernel))];
    const name_of = (cell) => (kernels.length > 1 || !cell.series ? cell.kernel + (cell.series ? " " : "") : "") + cell.series;
    // A colour per series, a mark and a dash per kernel; a single series needs its colours for the kernels.
    const series = [...new Set(cells.map((cell) => cell.series))];
    const hue_of = (cell) => (series.length > 1 ? cell.series : cell.kernel);
    const points = cells.filter((cell) => finite(cell.error)).map((cell) => ({
      hue: hue_of(cell), x: cell.x, y: cell.error, low: Math.min(...cell.errors.filter(finite)), high: Math.max(...cell.errors.filter(finite)),
      name: name_of(cell), kernel: cell.kernel, token: cell.token,
      tip: `${name_of(cell)}, ${result.x} ${x_name(cell)}: error ${cell.error.toPrecision(4)}, bound ${Number(cell.bound).toPrecision(4)}, ratio ${Number(cell.ratio).toPrecision(3)}`,
    }));
    const bounds = cells.filter((cell) => finite(cell.bound)).map((cell) => ({x: cell.x, y: cell.bound, name: name_of(cell), hue: hue_of(cell)}));
    const xs = cells.map((cell) => cell.x), ys = [...points.flatMap((p) => [p.low, p.high]), ...bounds.map((p) => p.y)];
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = [Math.min(...ys, 1), Math.max(...ys, 1e-30)];
    const home = {x: result.logarithmic ? [x0 / 1.15, Math.max(x1, x0 * 2) * 1.15] : [x0 - 0.5, x1 + 0.5], y: [y0 / 2, Math.max(y1, y0 * 10) * 2]};
    const of_series = (source) => ({facet: {name: "one", data: source, groupby: "name"}});
    const colour = {scale: "colour", field: "hue"};
    return {
      ...frame(width, 340),
      signals: [
        {name: "home_x", value: home.x}, {name: "home_y", value: home.y}, {name: "names", value: result.names},
        {name: "grip", value: null, on: [
          {events: "mousedown", update: "{x: x(), y: y(), dx: dom_x, dy: dom_y}"}, {events: "window:mouseup", update: "null"}]},
        {name: "dom_x", value: home.x, on: [
          {events: {type: "wheel", consume: true}, update: zoomed("x")},
          {events: "window:mousemove", update: moved("x")},
          {events: "dblclick", update: "home_x"}]},
        {name: "dom_y", value: home.y, on: [
          {events: {type: "wheel", consume: true}, update: zoomed("y")},
          {events: "window:mousemove", update: moved("y")},
          {events: "dblclick", update: "home_y"}]},
        {name: "emphasis", value: null, on: [
          {events: "symbol:mouseover", update: "datum.name"}, {events: "mouseout", update: "null"}]},
      ],
      data: [{name: "points", values: points}, {name: "bounds", values: bounds}],
      scales: [
        {name: "x", type: result.logarithmic ? "log" : "linear", base: 2, domain: {signal: "dom_x"}, range: "width", zero: false},
        {name: "y", type: "log", base: 10, domain: {signal: "dom_y"}, range: "height"},
        {name: "colour", type: "ordinal", domain: [...new Set(cells.map(hue_of))], range: palette},
        {name: "stroke", type: "ordinal", domain: kernels, range: [[1, 0], [12, 3], [6, 2, 2, 2], [9, 2, 3, 2]]},
        {name: "dash", type: "ordinal", domain: kernels, range: ["circle", "square", "triangle-up", "diamond"]},
      ],
      axes: [
        {orient: "bottom", scale: "x", title: result.x, labelOverlap: true, labelFlush: true, tickMinStep: 1,
         ...(result.logarithmic ? {format: "~r"} : {encode: {labels: {update: {text: {signal: "names[datum.value]"}}}}})},
        {orient: "left", scale: "y", title: "absolute error", grid: true, domain: false, ticks: false, tickCount: 6, format: ".0e"},
      ],
      legends: [
        {stroke: "colour", symbolType: "stroke", symbolStrokeWidth: 2, orient: "right", labelColor: "var(--ink-2)", labelFont: font, labelLimit: 260},
        ...(kernels.length > 1 && series.length > 1 ? [{shape: "dash", symbolFillColor: "var(--ink-2)", symbolStrokeWidth: 0, orient: "right", labelColor: "var(--ink-2)", labelFont: font, labelLimit: 260}] : []),
      ],
      marks: [{type: "group", clip: true, encode: {update: {width: {signal: "width"}, height: {signal: "height"}}}, marks: [
        {type: "group", from: of_series("bounds"), marks: [{type: "line", interactive: false, from: {data: "one"}, encode: {update: {
          x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: colour, strokeDash: {value: [2, 3]},
          strokeOpacity: {signal: "emphasis && emphasis != datum.name ? 0.1 : 0.6"}}}}]},
        {type: "group", from: of_series("points"), marks: [
          {type: "area", interactive: false, from: {data: "one"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "low"}, y2: {scale: "y", field: "high"}, fill: colour,
            fillOpacity: {signal: "emphasis && emphasis != datum.name ? 0.03 : 0.18"}}}},
          {type: "line", interactive: false, from: {data: "one"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: colour, strokeWidth: {value: 1.6},
            strokeDash: {scale: "stroke", field: "kernel"},
            strokeOpacity: {signal: "emphasis && emphasis != datum.name ? 0.15 : 1"}}}}]},
        {type: "symbol", from: {data: "points"}, encode: {update: {
          x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, fill: colour, size: {value: 34}, shape: {scale: "dash", field: "kernel"},
          tooltip: {field: "tip"}}}},
      ]}],
    };
  }

  // Largest error / bound: series down, the swept option across.
  function sweep_heat(table, width, figure) {
    const rows = cells_of(table, figure).map((cell) => ({
      x: cell.x, column: x_name(cell), line: cell.series || cell.kernel,
      ...shaded(cell.ratio, cell.ratio > 1 || cell.verdict === "finding"),
      tip: `${cell.series} ${result.x} ${x_name(cell)}: error/bound ${cell.ratio}, ${cell.verdict}; ${cell.token}`,
    }));
    const columns = [...new Set([...rows].sort((a, b) => a.x - b.x).map((row) => row.column))];
    return heat_map(rows, columns, [...new Set(rows.map((row) => row.line))], width, 26);
  }

  // Largest error / bound of one kernel in every run, a line per format.
  function trend(runs, width, figure) {
    const points = runs.flatMap((run, i) => run.ratios.filter((r) => r.kernel === figure.dataset.kernel).map((r) => ({
      x: i, ratio: r.max_ratio, y: finite(r.max_ratio) ? Math.log2(r.max_ratio) : null, name: r.dtype,
      tip: `run ${i + 1}, ${run.commit}, ${run.started}: ${r.dtype} error/bound ${r.max_ratio}, ${run.findings} findings in ${run.cases} cases`,
    })));
    const drawn = points.filter((p) => p.y !== null), ys = drawn.map((p) => p.y);
    const low = Math.floor(Math.min(-4, ...ys)), high = Math.ceil(Math.max(1, ...ys) + 0.25);
    return {
      ...frame(width, 190),
      signals: [powers(low, high), {name: "names", value: runs.map((run, i) => run.commit || `run ${i + 1}`)}],
      data: [{name: "points", values: points}, {name: "drawn", values: drawn}],
      scales: [
        {name: "x", type: "linear", domain: [-0.5, runs.length - 0.5], range: "width"},
        {name: "y", type: "linear", domain: [low, high], range: "height"},
        {name: "colour", type: "ordinal", domain: [...new Set(points.map((p) => p.name))], range: palette},
      ],
      axes: [
        {orient: "bottom", scale: "x", title: "commit", tickMinStep: 1, labelOverlap: true,
         encode: {labels: {update: {text: {signal: "names[datum.value] || ''"}}}}},
        {orient: "left", scale: "y", title: "error / bound", grid: true, domain: false, ticks: false, tickMinStep: 1, tickCount: 6,
         encode: {labels: {update: {text: {signal: "powers[datum.value]"}}}}},
      ],
      legends: [{stroke: "colour", symbolType: "stroke", symbolStrokeWidth: 2, orient: "right", labelColor: "var(--ink-2)", labelFont: font}],
      marks: [
        bound_rule({y: {scale: "y", value: 0}, x: {value: 0}, x2: {signal: "width"}}),
        {type: "group", clip: true, encode: {update: {width: {signal: "width"}, height: {signal: "height"}}}, marks: [
          {type: "group", from: {facet: {name: "one", data: "drawn", groupby: "name"}}, marks: [
            {type: "line", interactive: false, from: {data: "one"}, encode: {update: {
              x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: {scale: "colour", field: "name"}, strokeWidth: {value: 1.6}}}}]},
          {type: "symbol", from: {data: "drawn"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, fill: {scale: "colour", field: "name"}, size: {value: 34}, tooltip: {field: "tip"}}}},
        ]},
      ],
    };
  }

  const charts = {histogram, field, tightness, sweep_error, sweep_heat, trend};
  const kPrintWidth = 640;  // CSS pixels: the text block of an A4 page
  function draw(figure, width) {
    if (!width || figure.dataset.width === String(width)) return;
    figure.dataset.width = width;
    const canvas = figure.querySelector(".canvas");
    const spec = charts[figure.dataset.chart](at(figure.dataset.at), width, figure);
    canvas.replaceChildren();
    const view = new View(parse(spec, null, {ast: true}), {expr: expressionInterpreter, renderer: "svg", container: canvas, hover: false});
    figure.view = view;
    view.runAsync().catch((error) => { canvas.textContent = `chart not drawn: ${error.message}`; });
  }

  // + and - zoom a focused chart around its middle, 0 shows all of it.
  function zoom_by_key(event) {
    const view = event.currentTarget.closest("figure").view, factor = {"+": 0.8, "=": 0.8, "-": 1.25}[event.key];
    if (!view || !view.getState().signals.dom_x || (!factor && event.key !== "0")) return;
    for (const axis of ["x", "y"]) {
      const [low, high] = view.signal("dom_" + axis), log = axis === "y" || result.logarithmic;
      const [a, b] = log ? [Math.log(low), Math.log(high)] : [low, high], middle = (a + b) / 2, half = (b - a) / 2 * factor;
      const back = (value) => (log ? Math.exp(value) : value);
      view.signal("dom_" + axis, factor ? [back(middle - half), back(middle + half)] : view.signal("home_" + axis));
    }
    view.runAsync();
    event.preventDefault();
  }
  for (const canvas of document.querySelectorAll(".canvas[tabindex]")) canvas.addEventListener("keydown", zoom_by_key);

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const width_of = (figure) => Math.floor(figure.querySelector(".canvas").clientWidth);
  const draw_shown = () => figures.forEach((figure) => draw(figure, width_of(figure)));  // width 0: in closed details
  draw_shown();
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", draw_shown);
  let pending = 0;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(draw_shown, 150);
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details[id]").forEach((d) => { d.open = true; });  // findings
    figures.filter((f) => !f.dataset.width).forEach((f) => draw(f, kPrintWidth));
  });

  // A link to a finding opens it.
  const open_target = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open_target);
  open_target();

  // A button copies the text of the element before it; without clipboard access it selects the text instead.
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const source = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = document.execCommand("copy") ? "copied" : "selected";
      }
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }
})();
