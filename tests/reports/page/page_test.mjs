// Pages of real runs in a real browser: charts hold the document's numbers, nothing is fetched, zoom, hover, copy and theme work.
// node page_test.mjs BROWSER PROGRAM [FOLDER-FOR-SCREENSHOTS]
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {Browser} from "./browser.mjs";
import {expected_values} from "./expected_values.mjs";

const [program_of_browser, assay, screenshots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "assay_pages_"));

/// A run's report; `status` is the one it must end with.
function made(name, status, ...words) {
  const at = join(folder, name);
  let got = 0;
  try {
    execFileSync(assay, words.map((word) => (word === "REPORT" ? at : word)), {cwd: folder, stdio: "pipe"});
  } catch (error) {
    got = error.status;
    assert.equal(got, status, `${words.join(" ")}: ${error.stderr}`);
  }
  assert.equal(got, status, words.join(" "));
  return {name, url: pathToFileURL(join(at, "index.html")).href, document: JSON.parse(readFileSync(join(at, "result.json"), "utf8"))};
}

const small = ["-H", "2", "-K", "8", "-V", "8"];
const kPages = [
  () => made("sweep", 0, "sweep", "gla.chunk", "--compare", "gla.fused_recurrent", "--over", "length=16..128", "--over", "decay=none,reset",
             "--over", "dtype=bf16,fp32", "--seeds", "2", ...small, "--report", "REPORT"),
  () => made("sweep_of_names", 0, "sweep", "gla.chunk", "--over", "decay=none,mild,reset", "-T", "20", "--seeds", "1", ...small, "--report", "REPORT"),
  () => made("verification", 0, "verify", "gla.chunk", "-T", "150", ...small, "--report", "REPORT"),
  () => made("nan", 1, "verify", "gla.chunk@S1", "-T", "80", "-K", "64", "-V", "64", "--decay", "extreme", "--report", "REPORT"),
  () => made("fuzz", 0, "fuzz", "gla.fused_recurrent", "--cases", "12", "--seed", "1", "--db", "assay.db", "--report", "REPORT"),
  () => {
    made("fuzz_again", 0, "fuzz", "gla.fused_recurrent", "--cases", "12", "--seed", "2", "--db", "assay.db", "--report", "REPORT");
    return made("trend", 0, "report", "assay.db", "--trend", "--out", "REPORT");
  },
];

// ---- what runs inside the page ----

/// Opens everything, so that every chart is drawn, and waits for it.
const open_all = async () => {
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  for (let wait = 0; wait < 200 && !figures.every((f) => f.view && f.querySelector(".canvas svg")); ++wait) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await Promise.all(figures.filter((f) => f.view).map((f) => f.view.runAsync()));
};

/// Every chart: what it is of, the values its view holds, and where its marks stand against its scales.
const read_charts = () => [...document.querySelectorAll("figure[data-chart]")].map((figure) => {
  const {view} = figure, {width, ...of} = figure.dataset;
  if (!view) return {of, drawn: false};
  const name = {histogram: "bins", tightness: "cells", sweep_heat: "cells"}[of.chart] ?? "points";
  const plain = (rows) => JSON.parse(JSON.stringify(rows));
  const marks = [...figure.querySelectorAll(".canvas svg path, .canvas svg text")].map((element) => element.__data__)
    .filter((item) => item && item.datum && item.mark.marktype !== "group" && (item.datum.tip !== undefined));
  const astray = marks.filter((item) => {
    if (item.mark.marktype !== "symbol" || !item.size) return false;
    const field = of.chart === "sweep_error" || of.chart === "trend" ? ["x", "y"] : ["i", "e"];
    if (item.datum[field[1]] === null) return false;  // a mark of a non-finite value stands at the top
    return Math.hypot(view.scale("x")(item.datum[field[0]]) - item.x, view.scale("y")(item.datum[field[1]]) - item.y) > 0.5;
  });
  return {of, drawn: Boolean(figure.querySelector(".canvas svg")), text: figure.querySelector(".canvas").textContent.slice(0, 80),
          values: plain(view.data(name)), bounds: of.chart === "sweep_error" ? plain(view.data("bounds")) : undefined,
          marks: new Set(marks.map((item) => item.datum)).size, astray: astray.length};
});

const place_of = (selector, index) => {
  const element = document.querySelectorAll(selector)[index];
  element.scrollIntoView({block: "center"});
  const {x, y, width, height} = element.getBoundingClientRect();
  return {x: x + width / 2, y: y + height / 2, left: x, top: y + scrollY, width, height};
};
const zoomed_view = () => [...document.querySelectorAll("figure[data-chart=sweep_error]")][0].view;
const domains = `() => { const view = (${zoomed_view})(); return [view.signal("dom_x"), view.signal("dom_y")]; }`;

// ---- checks ----

function check_values({name, document}, charts) {
  assert.ok(charts.length > 0, `${name}: no charts`);
  for (const chart of charts) {
    const what = `${name}: ${chart.of.chart} ${chart.of.at} ${chart.of.kernel ?? ""} ${chart.of.output ?? ""} ${chart.of.dtype ?? ""}`;
    assert.ok(chart.drawn, `${what}: not drawn`);
    assert.doesNotMatch(chart.text, /not drawn/, what);
    const expected = expected_values(document, chart);
    assert.ok(expected.length > 0, `${what}: shows nothing`);
    for (const {value, read} of expected) assert.deepEqual(read(chart), value, what);
    assert.equal(chart.astray, 0, `${what}: marks beside their places`);
    assert.ok(chart.marks > 0, `${what}: no marks`);
  }
}

const span = ([low, high]) => Math.log(high / low);

async function check_zoom(browser) {
  const home = await browser.evaluate(domains), at = await browser.evaluate(place_of, "figure[data-chart=sweep_error] .canvas svg", 0);
  await browser.mouse("mouseWheel", at, {deltaX: 0, deltaY: -200});
  const nearer = await browser.evaluate(domains);
  for (const axis of [0, 1]) assert.ok(span(nearer[axis]) < 0.95 * span(home[axis]), "the wheel zooms");
  await browser.mouse("mousePressed", at, {button: "left", clickCount: 1});
  await browser.mouse("mouseMoved", {x: at.x + 60, y: at.y + 40}, {button: "left", buttons: 1});
  await browser.mouse("mouseReleased", {x: at.x + 60, y: at.y + 40}, {button: "left", clickCount: 1});
  const moved = await browser.evaluate(domains);
  assert.ok(moved[0][0] < nearer[0][0] && moved[1][0] > nearer[1][0], "a drag moves the picture with the hand");
  assert.ok(Math.abs(span(moved[0]) - span(nearer[0])) < 1e-6, "and keeps its size");
  await browser.click(at, 2);
  assert.deepEqual(await browser.evaluate(domains), home, "a double click goes back");
  await browser.evaluate(() => document.querySelector("figure[data-chart=sweep_error] .canvas").focus());
  await browser.press("+");
  assert.ok(span((await browser.evaluate(domains))[0]) < span(home[0]), "+ zooms");
  await browser.press("0");
  assert.deepEqual(await browser.evaluate(domains), home, "0 goes back");
}

async function check_hover(browser) {
  const at = await browser.evaluate(place_of, "figure[data-chart=sweep_error] .mark-symbol path[aria-label], figure[data-chart=sweep_error] .mark-symbol path", 0);
  await browser.mouse("mouseMoved", {x: at.x - 40, y: at.y - 40});
  await browser.mouse("mouseMoved", at);
  const shown = await browser.evaluate(() => {
    const figure = document.querySelector("figure[data-chart=sweep_error]");
    return {title: [...figure.querySelectorAll("[title]")].map((e) => e.title).join("|"), emphasis: figure.view.signal("emphasis"),
            tips: figure.view.data("points").map((p) => p.tip), names: figure.view.data("points").map((p) => p.name)};
  });
  assert.ok(shown.tips.includes(shown.title), `a point says its numbers: '${shown.title}'`);
  assert.ok(shown.names.includes(shown.emphasis), "and its series stands out");
}

async function check_copy(browser, document) {
  await browser.send("Browser.grantPermissions", {permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"]});
  await browser.send("Page.bringToFront");
  await browser.click(await browser.evaluate(place_of, "button.copy", 0));
  await browser.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
  assert.equal(await browser.evaluate(() => document.querySelector("button.copy").textContent), "copied");
  assert.equal(await browser.evaluate(() => navigator.clipboard.readText()), document.replay);
}

async function check_theme(browser) {
  const colours = () => {
    const label = document.querySelector("figure[data-chart] .canvas svg .role-axis-label text");
    return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, getComputedStyle(label).fill];
  };
  const seen = {};
  for (const value of ["light", "dark"]) {
    await browser.send("Emulation.setEmulatedMedia", {features: [{name: "prefers-color-scheme", value}]});
    seen[value] = await browser.evaluate(colours);
  }
  seen.light.forEach((colour, i) => assert.notEqual(colour, seen.dark[i], "the theme reaches page and charts"));
  await browser.send("Emulation.setEmulatedMedia", {media: "print", features: [{name: "prefers-color-scheme", value: "dark"}]});
  assert.equal((await browser.evaluate(colours))[0], "rgb(255, 255, 255)", "paper is white");
  await browser.send("Emulation.setEmulatedMedia", {media: "", features: []});
}

async function check_narrow(browser, name) {
  await browser.send("Emulation.setDeviceMetricsOverride", {width: 390, height: 844, deviceScaleFactor: 1, mobile: false});
  await browser.evaluate(() => new Promise((resolve) => setTimeout(resolve, 400)));
  const [content, window] = await browser.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${name}: ${content} pixels wide in a window of ${window}`);
  await browser.send("Emulation.clearDeviceMetricsOverride");
}

/// A picture of the first chart of each kind on any page, and of the origin's graph.
const pictured = new Set();
async function take_pictures(browser) {
  mkdirSync(screenshots, {recursive: true});
  const kinds = await browser.evaluate(() => [...new Set([...document.querySelectorAll("figure[data-chart]")].map((f) => f.dataset.chart))]);
  const selectors = kinds.map((kind) => [kind, `figure[data-chart=${kind}]`]);
  if (await browser.evaluate(() => document.querySelector("svg.origin") !== null)) selectors.push(["origin", "svg.origin"]);
  for (const [kind, selector] of selectors.filter(([kind]) => !pictured.has(kind))) {
    pictured.add(kind);
    const {left, top, width, height} = await browser.evaluate(place_of, selector, 0);
    const {data} = await browser.send("Page.captureScreenshot", {clip: {x: left, y: top, width, height, scale: 1}, captureBeyondViewport: true});
    writeFileSync(join(screenshots, `${kind}.png`), Buffer.from(data, "base64"));
  }
}

async function check_page(browser, page) {
  await browser.open(page.url);
  await browser.evaluate(open_all);
  const charts = await browser.evaluate(read_charts);
  check_values(page, charts);
  if (screenshots) await take_pictures(browser);
  if (page.name === "sweep") {
    await check_zoom(browser);
    await check_hover(browser);
  }
  if (page.name === "nan") assert.ok(await browser.evaluate(() => document.querySelectorAll("svg.origin .box").length) >= 3, "the origin's graph");
  if (page.document.replay) await check_copy(browser, page.document);
  await check_theme(browser);
  await check_narrow(browser, page.name);
  assert.deepEqual(browser.complaints, [], page.name);
  return charts.length;
}

const browser = new Browser(program_of_browser);
try {
  for (const make of kPages) {
    const page = make();
    console.log(`${page.name}: ${await check_page(browser, page)} charts hold the document's values`);
  }
} finally {
  await browser.close();
  rmSync(folder, {recursive: true, force: true});
}
