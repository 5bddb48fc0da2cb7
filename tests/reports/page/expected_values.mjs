// What each chart must hold, from the document alone: numbers, and where in the chart's data they are read.
const at = (document, pointer) => pointer.split("/").slice(1).reduce((value, key) => value[key], document);
/// Is the exponent at which a ratio is drawn its logarithm? Two engines' logarithms may differ in the last bits.
const same_place = (exponent, ratio) =>
  (typeof ratio === "number" && ratio > 0 ? Math.abs(exponent - Math.log2(ratio)) < 1e-12 * (1 + Math.abs(exponent)) : exponent === null);
const is_drawn = (value) => typeof value === "number" && value > 0;
const of_cell = (cell, option) => cell.settings.find((s) => s.option === option)?.value;

/// The cells of a figure of a sweep.
function cells_of(document, of) {
  const dtype = (cell) => of_cell(cell, "dtype") ?? cell.token.match(/\/(bf16|fp16|fp32)\//)[1];
  return document.cells.filter((cell) => cell.samples.length > 0 && cell.output === of.output && dtype(cell) === of.dtype &&
      (!of.kernel || cell.kernel === of.kernel));
}

/// The row of a chart's data that belongs to a cell.
const row_of = (rows, cell) => rows.find((row) => row.token === cell.token || row.tip?.includes(cell.token));

const of_chart = {
  histogram: (document, {of}) => at(document, of.at).histogram.map((count, bin) => ({
    value: count, read: (chart) => chart.values.find((row) => row.bin === bin)?.count ?? 0})),

  field: (document, {of}) => at(document, of.at).max_ratio.map((ratio, i) => ({
    value: [i, ratio, typeof ratio !== "number", true],
    read: (chart) => {
      const row = chart.values[i];
      return [row.i, row.ratio, row.nonfinite, same_place(row.e, ratio)];
    }})),

  tightness: (document, {of}) => document.tightness.filter((row) => row.kernel === of.kernel).map((row, i) => ({
    value: [row.max_tightness, row.decay], read: (chart) => [chart.values[i].value, chart.values[i].column]})),

  trend: (document, {of}) => document.runs.flatMap((run, i) => run.ratios.filter((r) => r.kernel === of.kernel).map((r) => ({
    value: r.max_ratio, read: (chart) => chart.values.find((row) => row.x === i && row.name === r.dtype)?.ratio}))),

  sweep_heat: (document, {of}) => cells_of(document, of).map((cell) => ({
    value: cell.over_seeds.max_ratio, read: (chart) => row_of(chart.values, cell)?.value})),

  sweep_error: (document, {of}) => cells_of(document, of).flatMap((cell) => {
    const errors = cell.samples.map((s) => s.max_error).filter(is_drawn);
    const points = !is_drawn(cell.over_seeds.max_error) ? [] : [{
      value: [cell.over_seeds.max_error, Math.min(...errors), Math.max(...errors)],
      read: (chart) => { const row = row_of(chart.values, cell); return [row?.y, row?.low, row?.high]; }}];
    const bound = cell.over_seeds.max_bound;
    return is_drawn(bound) ? [...points, {value: true, read: (chart) => chart.bounds.some((row) => row.y === bound)}] : points;
  }),
};

/// [{value, read(chart)}]: what the document says, and what the chart drew for it.
export const expected_values = (document, chart) => of_chart[chart.of.chart](document, chart);
