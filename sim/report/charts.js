// Draws the figures of the page from the JSON in it.
(() => {
  "use strict";

  const series = JSON.parse(document.getElementById("result").textContent).series;
  const seconds = series.seconds || [];
  const regions = series.regions || [];
  const faults = series.faults || [];
  const root = document.documentElement;
  const color = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const regionColor = i => color("region-" + i % 8);
  const greatest = column => column.reduce((a, b) => Math.max(a, b || 0), 0);

  // Numbers as the tables show them.
  const short = v => {
    const size = Math.abs(v);
    return v.toLocaleString("en-US", {maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 1 : 2});
  };
  const percent = v => v > 0 && v < 0.0001 ? "<0.01%" : short(v * 100) + "%";
  const millis = v => v >= 10000 ? short(v / 1000) + " s" : short(v) + " ms";
  const time = v => short(v) + " s";
  const shown = format => (u, v, s, i) => i == null ? "--" : format(v);

  // A sample is of the step that ends at its time.
  const steps = uPlot.paths.stepped({align: -1});

  // Each of these describes a chart: its lines, how the y axis reads, and what
  // its samples are as a table.
  function admitted(rule, withLimit) {
    const columns = rule.admitted || [];
    const lines = columns.map((column, i) => ({
      label: regions[i] || "region " + i, column, format: short, stacked: true,
      stroke: regionColor(i), fill: regionColor(i), width: 0.5,
    }));
    const all = seconds.map((_, t) => columns.reduce((sum, c) => sum + c[t], 0));
    let top = greatest(all);
    if (withLimit) {
      const share = rule.limit * series.step_seconds / rule.window_seconds;
      top = Math.max(top, share);
      lines.push({
        label: "limit", column: seconds.map(() => share), stroke: color("limit"), dash: [6, 4], width: 1.5,
        format: () => short(rule.limit) + " in " + time(rule.window_seconds), constant: true,
      });
    }
    const denied = rule.denied || [];
    lines.push({
      label: "denied", column: denied, format: short, stroke: color("soft"), dash: [2, 3], width: 1.25,
      show: greatest(denied) <= 3 * top,
    });
    return {lines, axis: "hits in " + time(series.step_seconds), format: short, what: "hits admitted of " + rule.rule};
  }

  function overage(rule) {
    const over = rule.overage || [], bound = rule.bound || [];
    return {
      lines: [
        {label: "overage", column: over, format: percent, stroke: color("overage"), fill: color("overage") + "55", width: 1.5},
        {label: "bound", column: bound, format: percent, stroke: color("bound"), dash: [6, 4], width: 1.5},
      ],
      // A bound far above would press the overage into the axis.
      bent: greatest(bound) > 10 * greatest(over),
      least: 0.1, axis: "overage", format: percent, what: "overage of " + rule.rule,
    };
  }

  function staleness() {
    return {
      lines: [
        {label: "in a region", column: series.in_region_ms || [], format: millis, stroke: regionColor(0), width: 1.5},
        {label: "across regions", column: series.across_ms || [], format: millis, stroke: regionColor(1), width: 1.5},
      ],
      log: true, axis: "age of views", format: millis, ticks: v => v >= 1000 ? short(v / 1000) + " s" : millis(v), what: "staleness",
    };
  }

  // stack returns the columns of uPlot: lines that are stacked and visible
  // stand on those before them.
  function stack(chart, visible) {
    const sum = seconds.map(() => 0);
    return [seconds, ...chart.lines.map((line, i) => {
      if (chart.log) return line.column.map(v => Math.max(v, 1));
      if (!line.stacked || !visible(i)) return line.column;
      return line.column.map((v, t) => sum[t] += v);
    })];
  }

  // bands clip the fill of each stacked line to what is above the one below.
  function bands(chart, visible) {
    const out = [];
    let below = -1;
    chart.lines.forEach((line, i) => {
      if (!line.stacked || !visible(i)) return;
      if (below >= 0) out.push({series: [i + 1, below + 1]});
      below = i;
    });
    return out;
  }

  function yScale(chart) {
    if (chart.log) return {distr: 3, range: (u, min, max) => uPlot.rangeLog(Math.max(min, 1), Math.max(max, 10), 10, false)};
    const range = (u, min, max) => [0, max > 0 ? max * 1.08 : chart.least || 1];
    if (!chart.bent) return {range};
    return {distr: 100, fwd: v => Math.asinh(v / bend), bwd: v => Math.sinh(v) * bend, range};
  }

  // The bent axis is straight up to bend and logarithmic from there.
  const bend = 0.01;
  const bentSplits = (u, axis, min, max) => {
    const splits = [0];
    for (let decade = bend; decade <= max; decade *= 10) splits.push(decade, 3 * decade);
    return splits.filter(v => v <= max);
  };

  // Faults are shaded over the whole height; their names stand in lanes above.
  const laneHeight = 16, maxLanes = 3;

  function laneFont() { return "11px system-ui, sans-serif"; }

  // place gives each fault that can be named a lane and a place in it: its
  // number and text, or only its number where there is no room.
  function place(ctx, left, right, at) {
    const ends = [];
    const put = (x, width) => {
      x = Math.max(left, Math.min(x, right - width));
      for (let lane = 0; lane < maxLanes; lane++) {
        if (!(ends[lane] > x)) {
          ends[lane] = x + width + 6;
          return {x, lane};
        }
      }
    };
    const out = [];
    faults.forEach((fault, i) => {
      const x = at(fault.from);
      if (at(fault.to) < left || x > right) return;
      for (const text of [i + 1 + " " + fault.text, String(i + 1)]) {
        const spot = put(x, ctx.measureText(text).width);
        if (spot) {
          out.push({...spot, text});
          return;
        }
      }
    });
    return {labels: out, lanes: ends.length};
  }

  function faultsPlugin(lanes) {
    const inBox = (u, draw) => {
      const {ctx, bbox} = u;
      ctx.save();
      draw(ctx, bbox, devicePixelRatio);
      ctx.restore();
    };
    return {hooks: {
      drawClear: u => inBox(u, (ctx, box, ratio) => {
        ctx.beginPath();
        ctx.rect(box.left, box.top, box.width, box.height);
        ctx.clip();
        faults.forEach(fault => {
          const from = u.valToPos(fault.from, "x", true), to = u.valToPos(fault.to, "x", true);
          ctx.fillStyle = color("fault");
          ctx.globalAlpha = 0.14;
          ctx.fillRect(from, box.top, to - from, box.height);
          ctx.globalAlpha = 0.7;
          ctx.fillRect(from, box.top, ratio, box.height);
          if (to > from) ctx.fillRect(to - ratio, box.top, ratio, box.height);
        });
      }),
      draw: u => inBox(u, (ctx, box, ratio) => {
        ctx.scale(ratio, ratio);
        ctx.font = laneFont();
        ctx.fillStyle = color("fault");
        ctx.textAlign = "left";
        ctx.textBaseline = "bottom";
        const at = v => u.valToPos(v, "x", true) / ratio;
        place(ctx, box.left / ratio, (box.left + box.width) / ratio, at).labels.forEach(({x, lane, text}) => {
          if (lane < lanes) ctx.fillText(text, x, box.top / ratio - 2 - lane * laneHeight);
        });
      }),
    }};
  }

  // lanesAt is how many lanes the names need in a chart of a width.
  function lanesAt(width) {
    if (faults.length === 0) return 0;
    const ctx = document.createElement("canvas").getContext("2d");
    ctx.font = laneFont();
    const left = 70, right = width - 20, end = seconds[seconds.length - 1] || 1, start = seconds[0] || 0;
    return place(ctx, left, right, v => left + (v - start) / (end - start || 1) * (right - left)).lanes;
  }

  const plots = [];
  let zooming = false;

  function zoomAll(u, key) {
    if (key !== "x" || zooming) return;
    zooming = true;
    const {min, max} = u.scales.x;
    plots.forEach(p => { if (p !== u) p.setScale("x", {min, max}); });
    zooming = false;
  }

  function axis(more) {
    const line = {stroke: color("grid"), width: 1};
    return {stroke: color("soft"), grid: line, ticks: line, font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif", labelSize: 20, ...more};
  }

  function options(chart, width) {
    const lanes = lanesAt(width);
    const visible = u => i => u.series[i + 1].show;
    return {
      width, height: (root.classList.contains("printing") ? 190 : 250) + lanes * laneHeight,
      padding: [8 + lanes * laneHeight, 16, 0, 0],
      cursor: {sync: {key: "time"}, drag: {x: true, y: false}},
      scales: {x: {time: false}, y: yScale(chart)},
      axes: [
        axis({values: (u, v) => v.map(x => x == null ? "" : time(x)), label: "virtual time", size: 34, labelSize: 18}),
        axis({values: (u, v) => v.map(y => y == null ? "" : (chart.ticks || chart.format)(y)), label: chart.axis, size: 64,
          ...(chart.bent ? {splits: bentSplits, filter: (u, splits) => splits} : {})}),
      ],
      series: [{label: "time", value: shown(time)}, ...chart.lines.map(line => ({
        label: line.label, stroke: line.stroke, fill: line.fill, width: line.width, dash: line.dash,
        show: line.show !== false, points: {show: false}, paths: line.constant ? undefined : steps,
        value: (u, v, s, i) => i == null ? "--" : line.format(line.column[i]),
      }))],
      bands: bands(chart, i => chart.lines[i].show !== false),
      plugins: [faultsPlugin(lanes)],
      hooks: {
        setScale: [zoomAll],
        setSeries: [(u, i, how) => {
          if (how.show == null || !chart.lines.some(line => line.stacked)) return;
          u.delBand(null);
          bands(chart, visible(u)).forEach(band => u.addBand(band));
          u.setData(stack(chart, visible(u)), false);
          u.redraw();
        }],
      },
    };
  }

  function describe(figure) {
    const rule = (series.rules || [])[Number(figure.dataset.rule)];
    switch (figure.dataset.chart) {
      case "admitted": return admitted(rule, "limit" in figure.dataset);
      case "overage": return overage(rule);
    }
    return staleness();
  }

  // samples puts the figures of a chart under it, as a table for who cannot
  // or would rather not read a drawing.
  function samples(figure) {
    const details = document.createElement("details");
    details.className = "samples";
    const summary = document.createElement("summary");
    summary.textContent = "The samples as a table";
    details.append(summary);
    details.addEventListener("toggle", () => {
      if (details.children.length > 1) return;
      const chart = describe(figure);
      const lines = chart.lines.filter(line => !line.constant);
      const cell = (tag, text, scope) => {
        const element = document.createElement(tag);
        element.textContent = text;
        if (scope) element.scope = scope;
        return element;
      };
      const row = cells => {
        const tr = document.createElement("tr");
        tr.append(...cells);
        return tr;
      };
      const table = document.createElement("table");
      table.createCaption().textContent = "Samples of " + chart.what;
      table.createTHead().append(row([cell("th", "time", "col"), ...lines.map(l => cell("th", l.label, "col"))]));
      table.createTBody().append(...seconds.map((t, i) =>
        row([cell("th", time(t), "row"), ...lines.map(l => cell("td", l.format(l.column[i])))])));
      const wide = document.createElement("div");
      wide.className = "wide";
      wide.tabIndex = 0;
      wide.append(table);
      details.append(wide);
    });
    figure.append(details);
  }

  const figures = [...document.querySelectorAll("figure[data-chart]")];

  function drawAll(width) {
    plots.splice(0).forEach(p => p.destroy());
    figures.forEach(figure => {
      const holder = figure.querySelector(".chart");
      const chart = describe(figure);
      const u = new uPlot(options(chart, width || holder.clientWidth),
        stack(chart, i => chart.lines[i].show !== false), holder);
      const canvas = u.root.querySelector("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", "Chart: " + chart.what + " over time");
      plots.push(u);
    });
  }

  const printWidth = 680; // of A4 and of letter within the margins
  let drawnAt = 0;

  function redraw() {
    const printing = root.classList.contains("printing");
    drawnAt = figures[0].clientWidth;
    drawAll(printing ? printWidth : 0);
  }

  if (figures.length === 0) return;
  figures.forEach(samples);
  redraw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("resize", () => { if (figures[0].clientWidth !== drawnAt) redraw(); });
  addEventListener("beforeprint", () => { root.classList.add("printing"); redraw(); });
  addEventListener("afterprint", () => { root.classList.remove("printing"); redraw(); });
})();
