// What is behind a cell: its values, its splits, its record, and the command that verifies it.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const { tasks, cellColumns } = neuco.data;
  let back = null;

  neuco.node = (name, attributes, ...children) => {
    const node = document.createElement(name);
    Object.entries(attributes || {}).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  neuco.draw = (name, attributes, ...children) => {
    const node = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  const { node, draw } = neuco;
  const dialog = node("dialog", { id: "cell", "aria-labelledby": "cell-title" });
  document.body.append(dialog);
  dialog.addEventListener("close", () => back && back.focus());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) { dialog.close(); } });

  // The scores of the splits as dots on the scale of the splits, and their mean.
  function strip(splits, digits) {
    const known = splits.filter((value) => value !== null), low = Math.min(...known), high = Math.max(...known);
    const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
    const x = (value) => (4 + 92 * (value - low) / ((high - low) || 1)) + "%";
    const text = (value) => value.toFixed(digits).replace("-", "−");
    const words = known.length + " splits from " + text(low) + " to " + text(high) + ", mean " + text(mean);
    const svg = draw("svg", { "class": "splits-strip", role: "img", "aria-label": words });
    svg.append(draw("line", { x1: "4%", x2: "96%", y1: 34, y2: 34, "class": "track" }));
    known.forEach((value, i) => svg.append(draw("circle", { cx: x(value), cy: 12 + 7 * (i % 3), r: 3, "class": "split" })));
    svg.append(draw("circle", { cx: x(mean), cy: 34, r: 5, "class": "dot" }));
    svg.append(draw("text", { x: "4%", y: 52, "class": "axis" }, text(low)), draw("text", { x: "96%", y: 52, "class": "axis end" }, text(high)));
    return [svg, node("p", { "class": "note" }, words + (known.length < splits.length ? "; " + (splits.length - known.length) + " without a score" : "") + ".")];
  }
  function terms(pairs, look) {
    return node("dl", { "class": "facts " + (look || "") }, ...pairs.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, value))));
  }

  neuco.open = (row, i, from) => {
    const task = tasks[i];
    back = from;
    neuco.need(neuco.data.splits ? [row.id] : [], ([loaded]) => {
      const details = loaded && (loaded.tasks || {})[task.id], close = node("button", { type: "button", "class": "quiet", id: "cell-close", autofocus: "" }, "Close");
      close.addEventListener("click", () => dialog.close());
      const title = node("h2", { id: "cell-title" }, row.title + " on " + task.title);
      const values = terms(cellColumns.map((column, k) => [column.label, neuco.text(column, row.cells[i][k])]));
      const rest = details ? [...strip(details.splits, 3), terms(details.facts, "record")] : [node("p", {}, "Only this mean is known: the scores of its splits were not published.")];
      if (details && details.command) { rest.push(node("p", {}, "Run it again and compare:"), node("pre", { tabindex: 0 }, node("code", {}, details.command))); }
      const links = node("p", {}, node("a", { href: "method/" + row.id + ".html" }, "About the method"), " · ", node("a", { href: "task/" + task.id + ".html" }, "About the task"));
      dialog.replaceChildren(close, title, values, ...rest, links);
      if (!dialog.open) { dialog.showModal(); }
    });
  };
})();
