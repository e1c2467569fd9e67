// The table: sort, search, filter, show another value. Ranks are those of the file; nothing is ranked here.
"use strict";
(function () {
  var table = document.getElementById("board");
  var body = table.tBodies[0];
  var lines = Array.from(body.rows);
  var heads = Array.from(table.tHead.rows[0].cells);
  var columns = neuco.data.columns, cellColumns = neuco.data.cellColumns;
  var firstTask = 1 + columns.length;

  function byId(id) { return document.getElementById(id); }
  function find(list, key) { return list.find(function (column) { return column.key === key; }); }
  function place() { return cellColumns.indexOf(find(cellColumns, neuco.state.show)); }
  function rowOf(line) { return neuco.data.rows[Number(line.dataset.i)]; }

  function taskAt(key) { return neuco.data.tasks.findIndex(function (task) { return "task:" + task.id === key; }); }
  // A range is sorted by its lower end.
  function value(row, key) {
    if (key === "method") { return row.title.toLowerCase(); }
    var column = find(columns, key), cell = row.cells[taskAt(key)];
    if (column) { return column.format === "range" ? (row.intervals[key] || [null])[0] : row.values[key]; }
    return cell ? cell[place()] : null;
  }
  // Without a word of the reader the best comes first; a column of cells without a direction has that of the task.
  function ascending(state) {
    if (state.dir) { return state.dir === "asc"; }
    var task = neuco.data.tasks[taskAt(state.sort)];
    if (!task) { return !find(columns, state.sort) || find(columns, state.sort).direction === "lower"; }
    var direction = find(cellColumns, state.show).direction;
    return direction ? direction === "lower" : task.greater_is_better === false;
  }

  function sort(state) {
    var up = ascending(state) ? 1 : -1;
    var keys = new Map(lines.map(function (line) { return [line, value(rowOf(line), state.sort)]; }));
    lines.sort(function (a, b) {
      var first = keys.get(a), second = keys.get(b);
      var none = (first === null || first === undefined) - (second === null || second === undefined);
      if (none) { return none; } // what is not known comes last, whichever way round
      if (first < second) { return -up; }
      if (first > second) { return up; }
      return Number(a.dataset.i) - Number(b.dataset.i);
    });
    body.append.apply(body, lines);
    heads.forEach(function (head) {
      head.setAttribute("aria-sort", head.dataset.key !== state.sort ? "none" : up > 0 ? "ascending" : "descending");
    });
  }

  function filter(state) {
    var count = 0, tasks = neuco.shownTasks(), picked = neuco.picked();
    lines.forEach(function (line) {
      var row = rowOf(line);
      line.hidden = !neuco.visible(row);
      count += line.hidden ? 0 : 1;
      var on = picked.indexOf(row.id) >= 0;
      line.classList.toggle("picked", on);
      line.querySelector(".pick").checked = on;
    });
    [table.tHead.rows[0]].concat(lines).forEach(function (line) {
      tasks.forEach(function (shown, i) { line.cells[firstTask + i].hidden = !shown; });
    });
    var words = count + " of " + lines.length + " methods shown";
    if (neuco.filters().length) { words += ". Ranks and weights are those of the whole board; they are not recomputed for a selection"; }
    byId("status").textContent = words + ".";
    // What is focused must not lie under the header, which stays in place.
    table.style.setProperty("--head", table.tHead.offsetHeight + "px");
  }

  function cells(state) {
    lines.forEach(function (line) {
      rowOf(line).cells.forEach(function (cell, i) {
        var shown = line.cells[firstTask + i];
        if (cell) { shown.textContent = (shown.classList.contains("marked") ? "~" : "") + neuco.text(find(cellColumns, state.show), cell[place()]); }
      });
    });
  }

  function chip(words, off) {
    var box = byId("chips"), button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
    button.addEventListener("click", function (event) {
      var at = Array.from(box.children).indexOf(button);
      neuco.set(off);
      // The chip is gone. With a pointer nothing is lost by that, and a phone would open its keyboard for the search.
      if (event.detail === 0) { (box.children[at] || box.lastChild || byId("search")).focus(); }
    });
    box.append(button);
    return button;
  }
  function chips() {
    byId("chips").replaceChildren();
    var on = neuco.filters();
    on.forEach(function (filter) {
      chip(filter.words + " ×", filter.off).setAttribute("aria-label", "Remove the filter: " + filter.words);
    });
    if (on.length > 1) { chip("Remove all", Object.assign.apply(null, [{}].concat(on.map(function (filter) { return filter.off; })))); }
  }

  var choices = ["show", "kind"].concat(neuco.limits, neuco.choices);
  var boxes = { "no-baselines": ["base", "hide"], "no-overlap": ["lap", "hide"], "facts": ["facts", "show"] };
  function controls(state) {
    if (byId("search").value !== state.q) { byId("search").value = state.q; }
    choices.forEach(function (id) { if (byId(id)) { byId(id).value = state[id]; } });
    Object.keys(boxes).forEach(function (id) { if (byId(id)) { byId(id).checked = Boolean(state[boxes[id][0]]); } });
    table.classList.toggle("no-facts", !state.facts);
  }

  // The page comes sorted by rank and with scores; touching thousands of cells for nothing would be felt.
  var sorted = "rank asc " + neuco.state.show, written = (cellColumns[0] || {}).key;
  function update(state) {
    var wanted = state.sort + (ascending(state) ? " asc " : " desc ") + state.show;
    if (wanted !== sorted) { sort(state); sorted = wanted; }
    if (state.show !== written) { cells(state); written = state.show; }
    filter(state); chips(); controls(state);
  }

  // The columns of the file: the ends of an interval have columns of their own.
  function fields() {
    var found = [];
    columns.forEach(function (column) {
      var key = column.key;
      found.push([key, function (row) { return row.values[key]; }]);
      if (!neuco.data.rows.some(function (row) { return row.intervals[key]; })) { return; }
      ["low", "high"].forEach(function (end, i) { found.push([key + "_" + end, function (row) { return (row.intervals[key] || [])[i]; }]); });
    });
    return found;
  }
  function csv() {
    var quote = function (text) { return '"' + String(text).replace(/"/g, '""') + '"'; };
    var shown = neuco.shownTasks(), all = fields();
    function isShown(_, i) { return shown[i]; }
    var tasks = neuco.data.tasks.filter(isShown).map(function (task) { return task.id + " (" + neuco.state.show + ")"; });
    var head = ["method", "title"].concat(all.map(function (field) { return field[0]; }), tasks);
    var rows = lines.filter(function (line) { return !line.hidden; }).map(function (line) {
      var row = rowOf(line);
      var cells = row.cells.filter(isShown).map(function (cell) { return cell ? cell[place()] : ""; });
      // A cell that starts like a formula would be run by a spreadsheet.
      var title = /^[=+\-@\t\r]/.test(row.title) ? "'" + row.title : row.title;
      return [row.id, title].concat(all.map(function (field) { return field[1](row); }), cells);
    });
    return [head].concat(rows).map(function (cells) {
      return cells.map(function (cell) { return quote(cell === null || cell === undefined ? "" : cell); }).join(",");
    }).join("\n") + "\n";
  }
  function download() {
    var href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    var link = Object.assign(document.createElement("a"), { href: href, download: neuco.data.board + "-view.csv" });
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }

  heads.forEach(function (head) {
    head.querySelector("button").addEventListener("click", function () {
      var key = head.dataset.key, state = neuco.state;
      if (state.sort !== key) { neuco.set({ sort: key, dir: "" }); return; }
      neuco.set({ dir: ascending(state) ? "desc" : "asc" });
    });
  });
  // Nor under the names; browsers do not heed a scroll margin inside a header that stays in place.
  table.tHead.addEventListener("focusin", function (event) {
    var head = event.target.closest("th"), box = table.parentNode;
    var under = heads[1].getBoundingClientRect().right - head.getBoundingClientRect().left;
    if (head === heads[0]) { box.scrollLeft = 0; } else if (head !== heads[1] && under > 0) { box.scrollLeft -= under; }
  });
  byId("search").addEventListener("input", function (event) { neuco.set({ q: event.target.value }); });
  choices.forEach(function (id) {
    if (byId(id)) { byId(id).addEventListener("change", function (event) { neuco.set({ [id]: event.target.value }); }); }
  });
  Object.keys(boxes).filter(byId).forEach(function (id) {
    var key = boxes[id][0], on = boxes[id][1];
    byId(id).addEventListener("change", function (event) { neuco.set({ [key]: event.target.checked ? on : "" }); });
  });
  byId("download").addEventListener("click", download);
  body.addEventListener("change", function (event) {
    if (!event.target.classList.contains("pick")) { return; }
    var id = rowOf(event.target.closest("tr")).id;
    var picked = neuco.picked().filter(function (other) { return other !== id; });
    if (event.target.checked) { picked.push(id); }
    neuco.set({ pick: picked.join(",") });
  });
  // What a score is made of, written when it is pointed at: in every cell of a large board it would be half the page.
  body.addEventListener("pointerover", function (event) {
    var cell = event.target.closest("td");
    if (!cell || cell.title || cell.cellIndex < firstTask) { return; }
    var i = cell.cellIndex - firstTask, own = rowOf(cell.parentNode).cells[i];
    if (!own) { return; }
    var task = neuco.data.tasks[i], overlap = rowOf(cell.parentNode).overlaps[task.dataset];
    cell.title = task.title + ": " + cellColumns.map(function (column, k) {
      return column.label + " " + neuco.text(column, own[k]);
    }).join(", ") + (overlap ? ". The method was " + overlap : "");
  });
  // "/" goes to the search, Escape empties it, arrows go from method to method.
  document.addEventListener("keydown", function (event) {
    // With Ctrl, Alt or Meta it is the browser's; Shift is how some keyboards write it.
    var bare = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (event.key === "/" && bare && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      byId("search").focus();
    } else if (event.key === "Escape" && event.target === byId("search")) {
      neuco.set({ q: "" });
    }
  });
  body.addEventListener("keydown", function (event) {
    var step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.tagName !== "A") { return; }
    var links = lines.filter(function (line) { return !line.hidden; }).map(function (line) { return line.querySelector("a"); });
    var next = links[links.indexOf(event.target) + step];
    if (next) { event.preventDefault(); next.focus(); }
  });

  byId("toolbar").hidden = false;
  neuco.listen(update);
  update(neuco.state);
})();
