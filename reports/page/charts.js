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

  // Counts of elements by floor(log2(error / bound)); the first bin holds the exact elements (compare.h).
  const kExactBin = 0, kBinOfOne = 60;
  function histogram(output, width) {
    const counts = output.histogram;
    const used = counts.map((count, bin) => (count > 0 && bin !== kExactBin ? bin : -1)).filter((bin) => bin >= 0);
    const first = Math.min(...used, kBinOfOne - 8), last = Math.max(...used, kBinOfOne);
    const row = (bin, label) => ({
      bin, label, count: counts[bin], outside: bin >= kBinOfOne,
      tip: `${counts[bin]} elements, error/bound ${bin === kExactBin ? "= 0 (exact)" : "in [" + label + ", " + power_of_two(bin - kBinOfOne + 1) + ")"}`,
    });
    const rows = [row(kExactBin, "exact")];
    for (let bin = first; bin <= last; ++bin) rows.push(row(bin, power_of_two(bin - kBinOfOne)));
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
      return {i: i * per, e: finite && ratio > 0 ? Math.log2(ratio) : null, nonfinite: !finite, outside: finite && ratio > 1,
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

  // Largest tightness per output, dtype and length class against decay profile.
  function tightness(table, width, figure) {
    const rows = table.filter((row) => row.kernel === figure.dataset.kernel).map((row) => {
      const ratio = row.max_tightness, finite = typeof ratio === "number";
      const exponent = finite && ratio > 0 ? Math.log2(ratio) : null;
      return {
        decay: row.decay, series: [row.output, row.dtype, row.length_class].filter(Boolean).join("  "),
        strength: exponent === null ? 0.04 : Math.min(1, Math.max(0.08, 1 + exponent / 10)),
        outside: !finite || ratio >= 1, text: !finite ? ratio : ratio === 0 ? "0" : ratio < 1e-3 ? ratio.toExponential(0) : ratio.toPrecision(2),
        tip: `${row.output} ${row.dtype} ${row.length_class}, ${row.decay}: tightness ${ratio}, error/bound ${row.max_ratio}, ${row.cases} cases`,
      };
    });
    // "T <= 64" before "T <= 1024"; the same columns for every kernel.
    const ordered = (names) => [...new Set(names)].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
    const series = ordered(rows.map((row) => row.series)), decays = ordered(table.map((row) => row.decay));
    return {
      ...frame(width, 24 * series.length + 40),
      data: [{name: "cells", values: rows}],
      scales: [
        {name: "x", type: "band", domain: decays, range: "width", padding: 0.04},
        {name: "y", type: "band", domain: series, range: "height", padding: 0.08},
      ],
      axes: [
        {orient: "top", scale: "x", domain: false, ticks: false, labelOverlap: true},
        {orient: "left", scale: "y", domain: false, ticks: false, labelPadding: 8},
      ],
      marks: [
        {type: "rect", from: {data: "cells"}, encode: {update: {
          x: {scale: "x", field: "decay"}, width: {scale: "x", band: 1}, y: {scale: "y", field: "series"}, height: {scale: "y", band: 1},
          fill: {signal: "datum.outside ? 'var(--bad)' : 'var(--accent)'"},
          fillOpacity: {signal: "datum.outside ? 1 : datum.strength"}, cornerRadius: {value: 2}, tooltip: {field: "tip"}}}},
        {type: "text", from: {data: "cells"}, interactive: false, encode: {update: {
          x: {scale: "x", field: "decay", band: 0.5}, y: {scale: "y", field: "series", band: 0.5},
          align: {value: "center"}, baseline: {value: "middle"}, text: {field: "text"},
          fill: {signal: "datum.outside || datum.strength > 0.6 ? 'var(--on-accent)' : 'var(--ink)'"}}}},
      ],
    };
  }

  const charts = {histogram, field, tightness};
  const kPrintWidth = 640;  // CSS pixels: the text block of an A4 page
  function draw(figure, width) {
    if (!width || figure.dataset.width === String(width)) return;
    figure.dataset.width = width;
    const canvas = figure.querySelector(".canvas");
    const spec = charts[figure.dataset.chart](at(figure.dataset.at), width, figure);
    canvas.replaceChildren();
    new View(parse(spec, null, {ast: true}), {expr: expressionInterpreter, renderer: "svg", container: canvas, hover: false})
        .runAsync().catch((error) => { canvas.textContent = `chart not drawn: ${error.message}`; });
  }

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
