// The drawings: intervals and groups, profiles over the tasks, two columns against each other. They show the methods that the table shows.
"use strict";
(() => {
  const HUES = 6, DASHES = 3, MANY = 60; // of more methods than that, bands are drawn and not lines
  const byId = (id) => document.getElementById(id), make = neuco.draw;

  // A unit of a drawing is a pixel of the screen, so that its words are as large on a phone as elsewhere.
  const widthOf = (id) => Math.max(260, byId(id).clientWidth || 720);
  function canvas(id, width, height, label) {
    const svg = make("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
    byId(id).replaceChildren(svg);
    return svg;
  }
  const rows = () => neuco.data.rows.filter((row) => row.values.rank !== null && neuco.visible(row));
  // Highlighted methods have a colour of their own; without any, the first three do.
  function colours(shown) {
    const picked = neuco.picked(), first = shown.filter((row) => row.values.rank <= 3).slice(0, 3).map((row) => row.id);
    const found = Object.create(null); // a method may be called "constructor"
    (picked.length ? picked : first).forEach((id, i) => { found[id] = "c" + (i % HUES) + " d" + (Math.floor(i / HUES) % DASHES); });
    return found;
  }
  // Whose the line or dot under the pointer is, in a place of its own: the legend stays.
  function point(node, says, words) {
    node.append(make("title", {}, words));
    node.addEventListener("pointerenter", () => { node.classList.add("over"); says.nextSibling.textContent = words; });
    node.addEventListener("pointerleave", () => { node.classList.remove("over"); says.nextSibling.textContent = ""; });
  }
  function legend(says, shown, colour, more) {
    const keyed = shown.filter((row) => colour[row.id]);
    says.replaceChildren(...keyed.map((row) => neuco.node("span", { "class": "key " + colour[row.id] }, row.values.rank + " " + row.title)));
    says.nextSibling.textContent = "";
    if (keyed.length > HUES * DASHES) { says.append("Colours and dashes repeat after " + HUES * DASHES + " methods."); }
    says.append(...(more || []));
  }
  function nothing(id, says, words) {
    byId(id).replaceChildren();
    says.textContent = words;
    says.nextSibling.textContent = "";
  }
  const short = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);
  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

  function parallel() {
    const at = neuco.data.profile, column = neuco.data.cellColumns[at], says = byId("parallel-says");
    const drawn = (row, i) => (row.cells[i] ? row.cells[i][at] : null);
    const shown = rows(), colour = colours(shown), open = neuco.shownTasks();
    const tasks = neuco.data.tasks.map((task, i) => ({ task, i })).filter((entry) => open[entry.i]);
    const values = neuco.data.rows.flatMap((row) => row.cells.map((_, i) => drawn(row, i))).filter((value) => value !== null);
    if (!shown.length || !tasks.length) { nothing("parallel", says, "No ranked method is shown."); return; }
    const low = Math.min(...values), high = Math.max(...values) + (Math.max(...values) === low);
    const best = column.direction === "lower" ? low : high, worst = column.direction === "lower" ? high : low;
    // Slanted names reach to the left of their axis and below it; the closer the axes, the steeper the names.
    const width = widthOf("parallel"), right = 24, top = 14, bottom = 250;
    const steep = Math.max(width < 480 ? 55 : 28, Math.asin(Math.min(1, 13 * tasks.length / (width - 100))) * 180 / Math.PI);
    const room = 10 + 6 * Math.max(...tasks.map((entry) => short(entry.task.name).length));
    const left = Math.max(40, room * Math.cos(steep * Math.PI / 180)), height = bottom + 24 + room * Math.sin(steep * Math.PI / 180);
    const svg = canvas("parallel", width, height, column.label + " of " + shown.length + " methods on " + tasks.length + " tasks");
    const x = (k) => (tasks.length < 2 ? width / 2 : left + k / (tasks.length - 1) * (width - left - right));
    const y = (value) => top + (value - best) / (worst - best) * (bottom - top);
    tasks.forEach((entry, k) => {
      svg.append(make("line", { x1: x(k), x2: x(k), y1: top, y2: bottom, "class": "track" }));
      const turn = "rotate(" + -steep.toFixed(1) + " " + x(k) + " " + (bottom + 16) + ")";
      svg.append(make("text", { x: x(k), y: bottom + 16, "class": "axis slant", transform: turn }, short(entry.task.name)));
    });
    [best, worst].forEach((end) => svg.append(make("text", { x: x(0) - 12, y: y(end) + 4, "class": "axis end" }, neuco.text(column, end))));
    const join = (spots) => spots.map((spot, k) => (k ? "L" : "M") + spot[0].toFixed(1) + " " + y(spot[1]).toFixed(1)).join("");
    const many = shown.length > MANY, keys = [];
    if (many) {
      // Quarters by final rank: where the middle half of each stands on every task.
      [0, 1, 2, 3].forEach((quarter) => {
        const own = shown.slice(Math.floor(quarter * shown.length / 4), Math.floor((quarter + 1) * shown.length / 4));
        const spots = tasks.map((entry, k) => [x(k), own.map((row) => drawn(row, entry.i)).filter((v) => v !== null).sort((a, b) => a - b)]).filter((spot) => spot[1].length);
        const edge = (share) => spots.map(([place, list]) => [place, quantile(list, share)]);
        const words = ["first", "second", "third", "last"][quarter] + " quarter of the ranking";
        const band = make("path", { d: join([...edge(0.25), ...edge(0.75).reverse()]) + "Z", "class": "band b" + quarter });
        point(band, says, "Middle half of the " + words);
        svg.append(band, make("path", { d: join(edge(0.5)), "class": "median b" + quarter }));
        keys.push(neuco.node("span", { "class": "key band-key b" + quarter }, words));
      });
    }
    const last = [];
    shown.filter((row) => !many || colour[row.id]).forEach((row) => {
      const known = tasks.map((entry, k) => [x(k), drawn(row, entry.i)]).filter((spot) => spot[1] !== null);
      // With one task there is nothing to join: a line of no length and round ends is a dot.
      const one = tasks.length < 2;
      const line = make("path", { d: join(known) + (one ? "h0" : ""), "class": (one ? "one profile " : "profile ") + (colour[row.id] || "") });
      point(line, says, "Rank " + row.values.rank + ": " + row.title);
      if (colour[row.id]) { last.push(line); } else { svg.append(line); }
    });
    svg.append(...last);
    legend(says, shown, colour, keys);
  }

  function scatter() {
    const says = byId("scatter-says"), [across, up] = neuco.data.scatter;
    const known = (row, column) => row.values[column.key] !== null && row.values[column.key] !== undefined;
    const ends = (row) => row.intervals[up.key] || [];
    const shown = rows().filter((row) => known(row, across) && known(row, up));
    if (!shown.length) {
      nothing("scatter", says, rows().length ? across.label + " is not known for the methods shown." : "No ranked method is shown.");
      return;
    }
    // Counts, such as the size of an embedding, differ by factors.
    const log = across.format === "integer" && shown.every((row) => row.values[across.key] > 0);
    const scaled = (value) => (log ? Math.log2(value) : value);
    const colour = colours(rows()), many = shown.length > MANY;
    const width = widthOf("scatter"), height = 430, left = 52, right = 20, top = 14, bottom = 380;
    const svg = canvas("scatter", width, height, up.label + " against " + across.label + " of " + shown.length + " methods");
    const places = shown.map((row) => scaled(row.values[across.key]));
    const heights = shown.flatMap((row) => [row.values[up.key], ...ends(row)]);
    let low = Math.min(...heights), high = Math.max(...heights), small = Math.min(...places), large = Math.max(...places);
    if (high === low) { high += 1; low -= 1; }
    const room = log ? 0.5 : (large - small) / 20 || 1;
    small = (log ? Math.floor(small) : small) - room;
    large = (log ? Math.ceil(large) : large) + room;
    const x = (value) => left + (scaled(value) - small) / (large - small) * (width - left - right);
    const y = (value) => bottom - (value - low) / (high - low) * (bottom - top);
    svg.append(make("line", { x1: left, x2: width - right, y1: bottom, y2: bottom, "class": "track" }));
    svg.append(make("line", { x1: left, x2: left, y1: top, y2: bottom, "class": "track" }));
    if (low < 0 && high > 0) { svg.append(make("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), "class": "zero" })); }
    const jump = log ? Math.max(1, Math.round((large - small) * 50 / (width - left - right))) : (large - small) / 4;
    for (let tick = log ? Math.ceil(small) : small; tick <= large; tick += jump) {
      const value = log ? 2 ** tick : tick;
      svg.append(make("text", { x: x(value), y: bottom + 18, "class": "axis middle" }, neuco.text(across, value)));
    }
    const digits = Math.max(0, Math.min(up.digits, 1 - Math.floor(Math.log10((high - low) / 4))));
    for (let step = 0; step <= 4; step += 1) {
      const value = low + (high - low) * step / 4;
      svg.append(make("text", { x: left - 6, y: y(value) + 4, "class": "axis end" }, neuco.text({ ...up, digits }, value)));
    }
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 8, "class": "axis middle" }, across.label));
    svg.append(make("text", { x: left + 6, y: top + 6, "class": "axis" }, up.label));
    // Methods of one size would hide each other: they stand side by side, in the order of their ranks.
    const beside = new Map();
    shown.forEach((row) => beside.set(row.values[across.key], [...(beside.get(row.values[across.key]) || []), row.id]));
    const step = (size) => Math.min(9, (log ? 0.8 : 0.04) * (width - left - right) / (large - small) / size);
    shown.filter((row) => !colour[row.id]).concat(shown.filter((row) => colour[row.id])).forEach((row) => {
      const group = make("g", { "class": "spot " + (many ? "small " : "") + (colour[row.id] || "") }), own = ends(row);
      const same = beside.get(row.values[across.key]);
      const at = x(row.values[across.key]) + (same.indexOf(row.id) - (same.length - 1) / 2) * step(same.length);
      if (own.length && (!many || colour[row.id])) { group.append(make("line", { x1: at, x2: at, y1: y(own[0]), y2: y(own[1]) })); }
      group.append(make("circle", { cx: at, cy: y(row.values[up.key]), r: many && !colour[row.id] ? 3 : 5 }));
      const said = [across, up].map((column) => column.label + " " + neuco.text(column, row.values[column.key]));
      point(group, says, row.title + ": " + said.join(", ") + ", rank " + row.values.rank);
      svg.append(group);
    });
    legend(says, shown, colour);
  }

  // Who is told apart: the interval of each rank, and a bar beside the methods of a group. Of many methods both are bands.
  function forest() {
    const shown = rows(), colour = colours(shown), says = byId("forest-says"), size = neuco.data.rows.filter((row) => row.values.rank !== null).length;
    if (!shown.length) { nothing("forest", says, "No ranked method is shown."); return; }
    const ends = (row) => row.intervals.rank || [row.values.rank, row.values.rank];
    const place = new Map(shown.map((row, k) => [neuco.data.rows.indexOf(row), k]));
    const runs = neuco.data.groups.map(([first, last]) => [...place].filter(([i]) => first <= i && i <= last).map(([, k]) => k)).filter((run) => run.length > 1);
    (shown.length > MANY ? bands : lines)(shown, runs.map((run) => [run[0], run.at(-1)]), ends, colour, says, size);
    legend(says, shown, colour, shown.length > MANY ? [neuco.node("span", { "class": "key band-key b0" }, "interval of the rank"), neuco.node("span", { "class": "key band-key reach" }, "not told apart")] : []);
  }
  const told = (row, ends) => "Rank " + row.values.rank + " (" + ends(row).join(" to ") + "): " + row.title;
  function ticks(most, room) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((jump) => most / jump * 34 < room) || 1000;
    return [1, ...Array.from({ length: Math.floor(most / step) }, (_, k) => (k + 1) * step)].filter((rank, k, all) => all.indexOf(rank) === k && (rank === 1 || rank - 1 >= step / 2));
  }
  function lines(shown, runs, ends, colour, says, most) {
    // Groups overlap; each gets the first lane that is free.
    const free = [], lane = runs.map(([first, last]) => { let k = free.findIndex((end) => end < first); if (k < 0) { k = free.length; } free[k] = last; return k; });
    const width = widthOf("forest"), lanes = Math.min(9 * free.length, width * 0.15), names = Math.min(330, width * 0.42), left = names + 8 + lanes, right = 6, top = 24, row = 22;
    const svg = canvas("forest", width, top + row * shown.length + 4, "Intervals of the ranks of " + shown.length + " methods, and " + runs.length + " groups that are not told apart");
    const x = (rank) => left + 10 + (rank - 1) / Math.max(1, most - 1) * (width - left - right - 20), y = (k) => top + row * (k + 0.5);
    ticks(most, width - left - right).forEach((rank) => {
      svg.append(make("line", { x1: x(rank), x2: x(rank), y1: top, y2: top + row * shown.length, "class": "track" }));
      svg.append(make("text", { x: x(rank), y: 14, "class": "axis middle" }, rank));
    });
    shown.forEach((own, k) => {
      const group = make("g", { "class": "spot " + (colour[own.id] || "") }), [low, high] = ends(own), most = Math.floor(names / 6.1);
      group.append(make("text", { x: names, y: y(k) + 4, "class": "axis end" }, own.title.length > most ? own.title.slice(0, most - 1) + "…" : own.title));
      group.append(make("line", { x1: x(low), x2: x(high), y1: y(k), y2: y(k), "class": "interval" }), make("circle", { cx: x(own.values.rank), cy: y(k), r: 5 }));
      point(group, says, told(own, ends));
      svg.append(group);
    });
    runs.forEach(([first, last], i) => {
      const at = names + 10 + lane[i] * lanes / free.length;
      svg.append(make("line", { x1: at, x2: at, y1: y(first) - 7, y2: y(last) + 7, "class": "together" }));
    });
  }
  function bands(shown, runs, ends, colour, says, most) {
    const width = widthOf("forest"), left = 44, right = 14, top = 12, bottom = 340;
    const svg = canvas("forest", width, bottom + 40, "Intervals of the ranks of " + shown.length + " methods, and how far each is not told apart");
    const x = (k) => left + k / (shown.length - 1) * (width - left - right), y = (rank) => top + (rank - 1) / Math.max(1, most - 1) * (bottom - top);
    const band = (from, to, look) => svg.append(make("path", { d: "M" + [...shown.map((_, k) => [x(k), y(from(k))]), ...shown.map((_, k) => [x(k), y(to(k))]).reverse()].map((spot) => spot.map((v) => v.toFixed(1)).join(" ")).join("L") + "Z", "class": "band " + look }));
    const rank = (k) => shown[k].values.rank, holding = shown.map((_, k) => runs.filter(([first, last]) => first <= k && k <= last));
    band((k) => Math.min(rank(k), ...holding[k].map(([first]) => rank(first))), (k) => Math.max(rank(k), ...holding[k].map(([, last]) => rank(last))), "reach");
    band((k) => ends(shown[k])[0], (k) => ends(shown[k])[1], "b0");
    ticks(most, bottom - top).forEach((tick) => svg.append(make("text", { x: left - 6, y: y(tick) + 4, "class": "axis end" }, tick)));
    svg.append(make("text", { x: (left + width) / 2, y: bottom + 26, "class": "axis middle" }, "methods, in the order of the ranking"));
    shown.forEach((own, k) => {
      if (!colour[own.id]) { return; }
      const group = make("g", { "class": "spot " + colour[own.id] }), [low, high] = ends(own);
      group.append(make("line", { x1: x(k), x2: x(k), y1: y(low), y2: y(high) }), make("circle", { cx: x(k), cy: y(rank(k)), r: 5 }));
      svg.append(group);
    });
    svg.addEventListener("pointermove", (event) => {
      const share = (event.clientX - svg.getBoundingClientRect().left - left) / (width - left - right);
      says.nextSibling.textContent = told(shown[Math.max(0, Math.min(shown.length - 1, Math.round(share * (shown.length - 1))))], ends);
    });
  }

  const figures = { forest, parallel, scatter }, present = Object.keys(figures).filter(byId), drawn = {};
  // A drawing is made when its tab is open, as wide as it is then.
  function draw() {
    present.filter((id) => byId(id).closest("[data-open]")).forEach((id) => { figures[id](); drawn[id] = byId(id).clientWidth; });
  }
  present.forEach((id) => {
    byId(id).closest("figure").hidden = false;
    byId(id + "-says").after(neuco.node("p", { "class": "note pointed" }));
  });
  window.addEventListener("resize", () => { if (present.some((id) => byId(id).clientWidth && byId(id).clientWidth !== drawn[id])) { draw(); } });
  neuco.listen(draw);
  neuco.start();
})();
