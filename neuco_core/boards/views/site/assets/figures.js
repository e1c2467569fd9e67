// The drawings: profiles over the tasks, and two columns against each other. They show the methods that the table shows.
"use strict";
(function () {
  var box = document.getElementById("drawn");
  if (!box) { return; }
  var SVG = "http://www.w3.org/2000/svg";
  var hues = 6, dashes = 3;

  function make(name, attributes, text) {
    var node = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    if (text !== undefined) { node.textContent = text; }
    return node;
  }
  // A unit of a drawing is a pixel of the screen, so that its words are as large on a phone as elsewhere.
  function widthOf(id) { return Math.max(260, document.getElementById(id).clientWidth || 720); }
  function canvas(id, width, height, label) {
    var svg = make("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
    document.getElementById(id).replaceChildren(svg);
    return svg;
  }
  function rows() {
    return neuco.data.rows.filter(function (row) { return row.values.rank !== null && neuco.visible(row); });
  }
  // Highlighted methods have a colour of their own; without any, the first three do.
  function colours(shown) {
    var picked = neuco.picked();
    if (!picked.length) { picked = shown.filter(function (row) { return row.values.rank <= 3; }).slice(0, 3).map(function (row) { return row.id; }); }
    var found = Object.create(null); // a method may be called "constructor"
    picked.forEach(function (id, i) { found[id] = "c" + (i % hues) + " d" + (Math.floor(i / hues) % dashes); });
    return found;
  }
  // Whose the line or dot under the pointer is, in a place of its own: the legend stays.
  function point(node, says, words) {
    node.append(make("title", {}, words));
    node.addEventListener("pointerenter", function () { node.classList.add("over"); says.nextSibling.textContent = words; });
    node.addEventListener("pointerleave", function () { node.classList.remove("over"); says.nextSibling.textContent = ""; });
  }
  function legend(says, shown, colour) {
    says.replaceChildren();
    says.nextSibling.textContent = "";
    var keyed = shown.filter(function (row) { return colour[row.id]; });
    keyed.forEach(function (row) {
      var words = row.values.rank + " " + row.title;
      says.append(Object.assign(document.createElement("span"), { className: "key " + colour[row.id], textContent: words }));
    });
    if (keyed.length > hues * dashes) { says.append("Colours and dashes repeat after " + hues * dashes + " methods."); }
  }
  function nothing(id, says, words) {
    document.getElementById(id).replaceChildren();
    says.textContent = words;
    says.nextSibling.textContent = "";
  }
  function short(id) { return id.length > 24 ? id.slice(0, 23) + "…" : id; }

  function parallel() {
    var at = neuco.data.profile, column = neuco.data.cellColumns[at];
    function drawn(row, i) { return row.cells[i] ? row.cells[i][at] : null; }
    var shown = rows(), colour = colours(shown), says = document.getElementById("parallel-says");
    var tasks = neuco.data.tasks.map(function (task, i) { return { task: task, i: i }; })
      .filter(function (entry) { return neuco.shownTasks()[entry.i]; });
    var values = neuco.data.rows.reduce(function (all, row) {
      return all.concat(row.cells.map(function (_, i) { return drawn(row, i); }));
    }, []).filter(function (value) { return value !== null; });
    var low = Math.min(...values), high = Math.max(...values);
    if (high === low) { high += 1; }
    var best = column.direction === "lower" ? low : high, worst = column.direction === "lower" ? high : low;
    if (!shown.length || !tasks.length) { nothing("parallel", says, "No ranked method is shown."); return; }
    // Slanted names reach to the left of their axis and below it; the closer the axes, the steeper the names.
    var width = widthOf("parallel"), right = 24, top = 14, bottom = 250;
    var steep = Math.max(width < 480 ? 55 : 28, Math.asin(Math.min(1, 13 * tasks.length / (width - 100))) * 180 / Math.PI);
    var room = 10 + 6 * Math.max.apply(null, tasks.map(function (entry) { return short(entry.task.id).length; }));
    var left = Math.max(40, room * Math.cos(steep * Math.PI / 180));
    var height = bottom + 24 + room * Math.sin(steep * Math.PI / 180);
    var svg = canvas("parallel", width, height, column.label + " of " + shown.length + " methods on " + tasks.length + " tasks");
    function x(k) { return tasks.length < 2 ? width / 2 : left + k / (tasks.length - 1) * (width - left - right); }
    function y(value) { return top + (value - best) / (worst - best) * (bottom - top); }
    tasks.forEach(function (entry, k) {
      svg.append(make("line", { x1: x(k), x2: x(k), y1: top, y2: bottom, "class": "track" }));
      var turn = "rotate(" + -steep.toFixed(1) + " " + x(k) + " " + (bottom + 16) + ")";
      svg.append(make("text", { x: x(k), y: bottom + 16, "class": "axis slant", transform: turn }, short(entry.task.id)));
    });
    [best, worst].forEach(function (end) { svg.append(make("text", { x: x(0) - 12, y: y(end) + 4, "class": "axis end" }, neuco.text(column, end))); });
    var last = [];
    shown.forEach(function (row) {
      var known = tasks.map(function (entry, k) { return [x(k), drawn(row, entry.i)]; }).filter(function (spot) { return spot[1] !== null; });
      var path = known.map(function (spot, k) { return (k ? "L" : "M") + spot[0].toFixed(1) + " " + y(spot[1]).toFixed(1); }).join("");
      // With one task there is nothing to join: a line of no length and round ends is a dot.
      var one = tasks.length < 2;
      var line = make("path", { d: path + (one ? "h0" : ""), "class": (one ? "one profile " : "profile ") + (colour[row.id] || "") });
      point(line, says, "Rank " + row.values.rank + ": " + row.title);
      if (colour[row.id]) { last.push(line); } else { svg.append(line); }
    });
    svg.append.apply(svg, last);
    legend(says, shown, colour);
  }

  function scatter() {
    var says = document.getElementById("scatter-says"), across = neuco.data.scatter[0], up = neuco.data.scatter[1];
    function known(row, column) { return row.values[column.key] !== null && row.values[column.key] !== undefined; }
    function ends(row) { return row.intervals[up.key] || []; }
    var shown = rows().filter(function (row) { return known(row, across) && known(row, up); });
    if (!shown.length) {
      nothing("scatter", says, rows().length ? across.label + " is not known for the methods shown." : "No ranked method is shown.");
      return;
    }
    // Counts, such as the size of an embedding, differ by factors.
    var log = across.format === "integer" && shown.every(function (row) { return row.values[across.key] > 0; });
    function scaled(value) { return log ? Math.log2(value) : value; }
    var colour = colours(rows());
    var width = widthOf("scatter"), height = 330, left = 52, right = 20, top = 14, bottom = 280;
    var svg = canvas("scatter", width, height, across.label + " against " + up.label + " of " + shown.length + " methods");
    var places = shown.map(function (row) { return scaled(row.values[across.key]); });
    var heights = shown.reduce(function (all, row) { return all.concat(row.values[up.key], ends(row)); }, []);
    var low = Math.min(...heights), high = Math.max(...heights);
    var small = Math.min(...places), large = Math.max(...places);
    if (high === low) { high += 1; low -= 1; }
    var room = log ? 0.5 : (large - small) / 20 || 1;
    small = (log ? Math.floor(small) : small) - room;
    large = (log ? Math.ceil(large) : large) + room;
    function x(value) { return left + (scaled(value) - small) / (large - small) * (width - left - right); }
    function y(value) { return bottom - (value - low) / (high - low) * (bottom - top); }
    svg.append(make("line", { x1: left, x2: width - right, y1: bottom, y2: bottom, "class": "track" }));
    svg.append(make("line", { x1: left, x2: left, y1: top, y2: bottom, "class": "track" }));
    if (low < 0 && high > 0) { svg.append(make("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), "class": "zero" })); }
    var jump = log ? Math.max(1, Math.round((large - small) * 50 / (width - left - right))) : (large - small) / 4;
    for (var tick = log ? Math.ceil(small) : small; tick <= large; tick += jump) {
      var value = log ? Math.pow(2, tick) : tick;
      svg.append(make("text", { x: x(value), y: bottom + 18, "class": "axis middle" }, neuco.text(across, value)));
    }
    for (var step = 0; step <= 4; step += 1) {
      var height_ = low + (high - low) * step / 4;
      var digits = Math.max(0, Math.min(up.digits, 1 - Math.floor(Math.log10((high - low) / 4))));
      svg.append(make("text", { x: left - 6, y: y(height_) + 4, "class": "axis end" }, neuco.text(Object.assign({}, up, { digits: digits }), height_)));
    }
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 8, "class": "axis middle" }, across.label));
    svg.append(make("text", { x: left + 6, y: top + 6, "class": "axis" }, up.label));
    shown.forEach(function (row) {
      var group = make("g", { "class": "spot " + (colour[row.id] || "") }), own = ends(row), at = x(row.values[across.key]);
      if (own.length) { group.append(make("line", { x1: at, x2: at, y1: y(own[0]), y2: y(own[1]) })); }
      group.append(make("circle", { cx: at, cy: y(row.values[up.key]), r: 5 }));
      var said = [across, up].map(function (column) { return column.label + " " + neuco.text(column, row.values[column.key]); });
      point(group, says, row.title + ": " + said.join(", ") + ", rank " + row.values.rank);
      svg.append(group);
    });
    legend(says, shown, colour);
  }

  var drawn = 0;
  var figures = { parallel: parallel, scatter: scatter };
  var present = Object.keys(figures).filter(function (id) { return document.getElementById(id); });
  function draw() { drawn = box.clientWidth; present.forEach(function (id) { figures[id](); }); }
  present.forEach(function (id) {
    document.getElementById(id + "-says").after(Object.assign(document.createElement("p"), { className: "note pointed" }));
  });
  box.hidden = false;
  window.addEventListener("resize", function () { if (box.clientWidth !== drawn) { draw(); } });
  neuco.listen(draw);
  draw();
})();
