// The drawings: profiles over the tasks, and size against quality. They show the methods that the table shows.
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
    return neuco.data.rows.filter(function (row) { return row.rank !== null && neuco.visible(row); });
  }
  // Highlighted methods have a colour of their own; without any, the first three do.
  function colours(shown) {
    var picked = neuco.picked();
    if (!picked.length) { picked = shown.filter(function (row) { return row.rank <= 3; }).slice(0, 3).map(function (row) { return row.id; }); }
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
      var item = document.createElement("span");
      item.className = "key " + colour[row.id];
      item.textContent = row.rank + " " + row.title;
      says.append(item);
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
    var shown = rows(), colour = colours(shown), says = document.getElementById("parallel-says");
    var tasks = neuco.data.tasks.map(function (task, i) { return { task: task, i: i }; })
      .filter(function (entry) { return neuco.shownTasks()[entry.i]; });
    var worst = Math.max.apply(null, [2].concat(neuco.data.rows.map(function (row) {
      return Math.max.apply(null, row.scores.map(function (s) { return s && s[2] ? s[2] : 1; }));
    })));
    if (!shown.length || !tasks.length) { nothing("parallel", says, "No ranked method is shown."); return; }
    // Slanted names reach to the left of their axis and below it; the closer the axes, the steeper the names.
    var width = widthOf("parallel"), right = 24, top = 14, bottom = 250;
    var steep = Math.max(width < 480 ? 55 : 28, Math.asin(Math.min(1, 13 * tasks.length / (width - 100))) * 180 / Math.PI);
    var room = 10 + 6 * Math.max.apply(null, tasks.map(function (entry) { return short(entry.task.id).length; }));
    var left = Math.max(40, room * Math.cos(steep * Math.PI / 180));
    var height = bottom + 24 + room * Math.sin(steep * Math.PI / 180);
    var svg = canvas("parallel", width, height, "Ranks of " + shown.length + " methods on " + tasks.length + " tasks");
    function x(k) { return tasks.length < 2 ? width / 2 : left + k / (tasks.length - 1) * (width - left - right); }
    function y(rank) { return top + (rank - 1) / (worst - 1) * (bottom - top); }
    tasks.forEach(function (entry, k) {
      svg.append(make("line", { x1: x(k), x2: x(k), y1: top, y2: bottom, "class": "track" }));
      var turn = "rotate(" + -steep.toFixed(1) + " " + x(k) + " " + (bottom + 16) + ")";
      svg.append(make("text", { x: x(k), y: bottom + 16, "class": "axis slant", transform: turn }, short(entry.task.id)));
    });
    [1, worst].forEach(function (rank) { svg.append(make("text", { x: x(0) - 12, y: y(rank) + 4, "class": "axis end" }, String(rank))); });
    var last = [];
    shown.forEach(function (row) {
      var path = tasks.map(function (entry, k) { return (k ? "L" : "M") + x(k).toFixed(1) + " " + y(row.scores[entry.i][2]).toFixed(1); }).join("");
      // With one task there is nothing to join: a line of no length and round ends is a dot.
      var one = tasks.length < 2;
      var line = make("path", { d: path + (one ? "h0" : ""), "class": (one ? "one profile " : "profile ") + (colour[row.id] || "") });
      point(line, says, "Rank " + row.rank + ": " + row.title);
      if (colour[row.id]) { last.push(line); } else { svg.append(line); }
    });
    svg.append.apply(svg, last);
    legend(says, shown, colour);
  }

  function scatter() {
    var says = document.getElementById("scatter-says");
    var shown = rows().filter(function (row) { return row.dim && row.mean_q !== null; });
    if (!shown.length) {
      nothing("scatter", says, rows().length ? "No sizes of embeddings are known for the methods shown." : "No ranked method is shown.");
      return;
    }
    var colour = colours(rows());
    var width = widthOf("scatter"), height = 330, left = 52, right = 20, top = 14, bottom = 280;
    var svg = canvas("scatter", width, height, "Size against mean Q of " + shown.length + " methods");
    var sizes = shown.map(function (row) { return Math.log2(row.dim); });
    var ends = shown.reduce(function (all, row) { return all.concat(row.q_interval.length ? row.q_interval : [row.mean_q]); }, []);
    var low = Math.min.apply(null, ends), high = Math.max.apply(null, ends);
    var small = Math.floor(Math.min.apply(null, sizes)) - 0.5, large = Math.ceil(Math.max.apply(null, sizes)) + 0.5;
    if (high === low) { high += 1; low -= 1; }
    function x(dim) { return left + (Math.log2(dim) - small) / (large - small) * (width - left - right); }
    function y(q) { return bottom - (q - low) / (high - low) * (bottom - top); }
    svg.append(make("line", { x1: left, x2: width - right, y1: bottom, y2: bottom, "class": "track" }));
    svg.append(make("line", { x1: left, x2: left, y1: top, y2: bottom, "class": "track" }));
    if (low < 0 && high > 0) { svg.append(make("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), "class": "zero" })); }
    for (var power = Math.ceil(small); power <= large; power += Math.max(1, Math.round((large - small) * 50 / (width - left - right)))) {
      svg.append(make("text", { x: x(Math.pow(2, power)), y: bottom + 18, "class": "axis middle" }, String(Math.pow(2, power))));
    }
    for (var step = 0; step <= 4; step += 1) {
      var q = low + (high - low) * step / 4;
      svg.append(make("text", { x: left - 6, y: y(q) + 4, "class": "axis end" }, q.toFixed(Math.abs(high - low) < 8 ? 1 : 0).replace("-", "−")));
    }
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 8, "class": "axis middle" }, "size of the embedding (numbers)"));
    svg.append(make("text", { x: left + 6, y: top + 6, "class": "axis" }, "mean Q"));
    shown.forEach(function (row) {
      var group = make("g", { "class": "spot " + (colour[row.id] || "") });
      if (row.q_interval.length) {
        group.append(make("line", { x1: x(row.dim), x2: x(row.dim), y1: y(row.q_interval[0]), y2: y(row.q_interval[1]) }));
      }
      group.append(make("circle", { cx: x(row.dim), cy: y(row.mean_q), r: 5 }));
      point(group, says, row.title + ": size " + row.dim + ", mean Q " + row.mean_q.toFixed(2).replace("-", "−") + ", rank " + row.rank);
      svg.append(group);
    });
    legend(says, shown, colour);
  }

  var drawn = 0;
  function draw() { drawn = box.clientWidth; parallel(); scatter(); }
  ["parallel-says", "scatter-says"].forEach(function (id) {
    var pointed = document.createElement("p");
    pointed.className = "note pointed";
    document.getElementById(id).after(pointed);
  });
  box.hidden = false;
  window.addEventListener("resize", function () { if (box.clientWidth !== drawn) { draw(); } });
  neuco.listen(draw);
  draw();
})();
