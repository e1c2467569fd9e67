// Two to four methods side by side. A difference is that of the first method to another, paired over the same splits.
"use strict";
(() => {
  const box = document.getElementById("compared");
  if (!box) { return; }
  const { node, draw } = neuco;
  const { tasks, cellColumns, rows, columns } = neuco.data;
  const ranked = rows.filter((row) => row.values.rank !== null);
  const score = cellColumns[0], MOST = 4;
  const byName = new Map(rows.map((row) => [row.id, row]));

  function chosen() {
    const picked = neuco.picked().filter((id) => byName.has(id)).slice(0, MOST);
    return picked.concat(ranked.map((row) => row.id).filter((id) => !picked.includes(id))).slice(0, Math.max(2, picked.length));
  }
  function choice(ids, k) {
    const options = rows.map((row) => node("option", { value: row.id }, (row.values.rank ?? "–") + "  " + row.title));
    const select = node("select", { "aria-label": "Method " + "ABCD"[k] }, ...(k > 1 ? [node("option", { value: "" }, "add a method")] : []), ...options);
    select.value = ids[k] || "";
    select.addEventListener("change", () => {
      const next = [...ids];
      next[k] = select.value;
      neuco.set({ pick: next.filter((id, i) => id && next.indexOf(id) === i).join(",") });
      box.querySelectorAll("select")[k].focus();
    });
    return node("label", {}, "ABCD"[k] + " ", select);
  }
  // The difference to another method on each task, as it was computed when the site was made; null where there is none.
  function differences(first, id) {
    const known = (first.against || {})[id] || tasks.map(() => null);
    return known.map((test) => test && { mean: test[0], low: test[1], high: test[2], p: test[4] });
  }
  // By p for all tasks of the pair, as neuco compare says it.
  function better(test, task) {
    if (!test || test.p > 0.05) { return 0; }
    return (test.mean > 0) === task.greater_is_better ? 1 : -1;
  }
  const chance = (p) => (p < 0.001 ? "p < 0.001" : "p = " + p.toFixed(3));
  function drawn(test, reach) {
    const x = (value) => (50 + 46 * value / reach) + "%";
    return draw("svg", { "class": "difference", "aria-hidden": "true" },
      draw("line", { x1: "50%", x2: "50%", y1: 0, y2: 20, "class": "zero" }),
      draw("line", { x1: x(test.low), x2: x(test.high), y1: 10, y2: 10, "class": "whisker" }),
      draw("circle", { cx: x(test.mean), cy: 10, r: 4, "class": "dot" }));
  }
  function cell(task, mine, other, test, reach, letter) {
    const text = (value) => neuco.text(score, value);
    if (!test) { return node("td", { "class": "number" }, mine && other ? text(mine[0] - other[0]) : "–"); }
    const side = better(test, task), verdict = [letter + " better", "no difference shown", "A better"][side + 1];
    const words = (test.mean > 0 ? "+" : "") + text(test.mean) + " (" + text(test.low) + " to " + text(test.high) + ")";
    return node("td", { "class": "gap" + (side > 0 ? " ahead" : side < 0 ? " behind" : "") }, node("div", {}, drawn(test, reach), node("span", {}, words), node("small", {}, chance(test.p) + ", " + verdict)));
  }
  function table(ids, first) {
    const picks = ids.map((id) => byName.get(id)), letter = (k) => "ABCD"[k];
    const named = (k) => node("th", { scope: "col", "class": "number named" }, node("b", {}, letter(k)), " " + picks[k].title);
    const others = ids.map((id) => differences(first, id)), gaps = tasks.map((_, i) => others.map((tests) => tests[i]));
    const reach = Math.max(...gaps.flat().filter(Boolean).flatMap((test) => [Math.abs(test.low), Math.abs(test.high)]), 1e-9);
    const heads = [node("th", { scope: "col" }, "Task"), named(0),
      ...ids.slice(1).flatMap((_, k) => [named(k + 1), node("th", { scope: "col" }, "A − " + letter(k + 1))])];
    const number = (value) => node("td", { "class": "number" }, neuco.text(score, value));
    const lines = tasks.map((task, i) => node("tr", {}, node("th", { scope: "row" }, node("a", { href: "task/" + task.id + ".html" }, task.name), ...(task.greater_is_better ? [] : [node("small", {}, " lower is better")])),
      number(picks[0].cells[i] && picks[0].cells[i][0]),
      ...picks.slice(1).flatMap((row, k) => [number(row.cells[i] && row.cells[i][0]), cell(task, picks[0].cells[i], row.cells[i], gaps[i][k + 1], reach, letter(k + 1))])));
    const wide = columns.filter((column) => ["number", "integer", "percent"].includes(column.format) && !neuco.data.more.includes(column.key));
    const whole = wide.map((column) => {
      const text = (row) => neuco.text(column, row.values[column.key]) + (row.intervals[column.key] ? " (" + row.intervals[column.key].map((end) => neuco.text(column, end)).join(" to ") + ")" : "");
      return node("tr", { "class": "whole" }, node("th", { scope: "row" }, column.label), node("td", { "class": "number" }, text(picks[0])),
        ...picks.slice(1).flatMap((row) => [node("td", { "class": "number" }, text(row)), node("td", {})]));
    });
    const sums = picks.slice(1).map((row, k) => {
      const sides = tasks.map((task, i) => better(gaps[i][k + 1], task)), count = (side) => sides.filter((other) => other === side).length;
      return neuco.data.pairs ? picks[0].title + " is better than " + row.title + " on " + count(1) + " tasks, worse on " + count(-1) + ", no difference shown on " + count(0) + ". " : "";
    });
    const summary = node("p", {}, ...(neuco.data.pairs ? sums.flatMap((words) => [words, node("br")]) : [neuco.data.splits ? "Of so many methods only means are compared here; neuco compare tests their differences." : "Only means are known: differences have no intervals."]));
    const inner = node("table", { "class": "plain" }, node("thead", {}, node("tr", {}, ...heads)), node("tbody", {}, ...whole, ...lines));
    return [summary, node("div", { "class": "scroll", tabindex: 0, role: "region", "aria-label": "Comparison of " + picks.map((row) => row.title).join(", ") }, inner)];
  }

  let shown = "";
  function update(state) {
    const ids = chosen();
    if (state.tab !== "compare" || shown === ids.join()) { return; }
    shown = ids.join();
    const choices = node("div", { "class": "controls" }, ...Array.from({ length: Math.min(MOST, ids.length + 1, rows.length) }, (_, k) => choice(ids, k)));
    box.replaceChildren(choices);
    box.hidden = false;
    neuco.need(neuco.data.pairs ? ids.slice(0, 1) : [], ([first]) => { if (shown === ids.join()) { box.replaceChildren(choices, ...table(ids, first || {})); } });
  }
  neuco.listen(update);
})();
